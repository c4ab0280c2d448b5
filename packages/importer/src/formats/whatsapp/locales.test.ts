// Tests that a chat of a phone in any language has the same dates as in English.
import { expect, test } from 'vitest'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { whatsappFormat } from './whatsapp.ts'

const LOCALES =
  'af am ar ar-AE ar-MA ar-SA-u-ca-islamic-umalqura az bg bn ca ckb cs da de de-AT el en en-CA en-GB en-IN en-US-u-ca-buddhist en-US-u-ca-persian en-ZA es es-AR es-MX et fa fi fil fr fr-CA ga gu he hi hr hu hy id is it ja ja-u-ca-japanese ka kk km kn ko lo lt lv mk ml mn mr ms my nb ne nl pa pl ps pt pt-PT ro ru si sk sl sq sr sv sw ta te th th-u-nu-thai tr uk ur uz vi zh zh-HK zh-TW zh-TW-u-ca-roc zu'.split(
    ' ',
  )
const SHORT = { dateStyle: 'short', timeStyle: 'short' } as const
const FORMS: Intl.DateTimeFormatOptions[] = [
  SHORT,
  { dateStyle: 'short', timeStyle: 'medium' },
  { ...SHORT, hour12: true },
  { year: 'numeric', month: '2-digit', day: '2-digit', hour: 'numeric', minute: '2-digit' },
]
const MINUTES = [
  '2024-05-04T00:05',
  '2024-05-06T09:30',
  '2024-05-25T12:45',
  '2024-06-03T21:05',
  '2024-12-01T23:59',
]
const MARKS = '\u200E'

test.each(LOCALES)('the dates of %s are those of the phone', async (locale) => {
  for (const form of FORMS) {
    const format = new Intl.DateTimeFormat(locale, { timeZone: 'UTC', ...form })
    const dates = MINUTES.map((minute) => format.format(Date.parse(`${minute}Z`)))
    for (const lines of [
      dates.map((date) => `${date} - Ada: Hi`),
      dates.map((date) => `${MARKS}[${date}] Ada: Hi`),
    ]) {
      const file = inputFile('WhatsApp Chat with Bo.txt', lines.join('\n'))
      expect([dates[0], await recognises(whatsappFormat, file)]).toEqual([dates[0], true])
      const { pieces } = await readAll(whatsappFormat, [file], { timezone: 'UTC' })
      const found = pieces.map(({ quotes: [quote] }) =>
        quote?.createdAt?.slice(0, MINUTES[0]?.length),
      )
      expect([dates[0], found]).toEqual([dates[0], MINUTES])
    }
  }
})

test('a chat in an unknown calendar or language is refused by name, and left out beside others', async () => {
  const file = inputFile(
    'a.txt',
    '17 א 5784, 09:30 - Ada: Hi\n25.05.2024 at half nine 9:30 foo - Ada: Hi',
  )
  expect(await recognises(whatsappFormat, file)).toBe(false)
  const unknown = inputFile(
    'b.txt',
    '25.05.2024, 9:30 ofoo - Ada: Hi\n26.05.2024, 9:30 ofoo - Ada: Hi',
  )
  expect(await recognises(whatsappFormat, unknown)).toBe(true)
  await expect(readAll(whatsappFormat, [unknown], { timezone: 'UTC' })).rejects.toThrow(
    'Set the phone',
  )
})
