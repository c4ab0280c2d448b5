// The time that each format takes for hostile input. `linear-expressions.test.ts` finds regular
// expressions that are slow, without running them.
import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { detectFormats } from '../input/detect-format.ts'
import { examples } from './examples.test-support.ts'
import { formats } from './formats.ts'
import { mailFormat } from './mail/mail-format.ts'
import { inputFile, readAll } from './read-all.test-support.ts'

/**
 * Stand, repeated, where the examples have texts and names: regular expressions and parsers go back
 * in them.
 */
const HOSTILE = [
  ...[
    ' ',
    '\n',
    '\r',
    'x ',
    'a,',
    '> ',
    ': ',
    '0:00 ',
    '1.1.24, ',
    'wrote:\n',
    '<',
    '<a',
    '<a@b> ',
    '<a>',
    '&#1',
  ],
  ...[
    '"',
    '\\"',
    '(',
    '[',
    '[a](',
    '=?',
    '=\r\n ',
    '@a ',
    ':a',
    '`',
    '*',
    '~{',
    '.a \u200E',
    'a\u0301',
    'http://',
  ],
]
const HEADERS = [
  ...[
    'From',
    'Sender',
    'To',
    'Subject',
    'Date',
    'Received',
    'Message-ID',
    'In-Reply-To',
    'References',
  ],
  ...[
    'Content-Type',
    'Content-Disposition',
    'Content-Transfer-Encoding',
    'X-Gmail-Labels',
    'X-Status',
  ],
]
const HOSTILE_HEADERS = [
  ' ',
  ' \r\n ',
  'a,',
  ': ',
  '<',
  '<a@b> ',
  '>,',
  '"',
  '\\',
  ')(',
  '=?',
  '=?x?Q?',
  ';',
  ';a*1=',
]
const LENGTH = 8 * 1024
/**
 * Less time than this is not compared: it is that of a machine which compiles, collects garbage,
 * and is busy.
 */
const LEAST_MS = 30

async function timeOf(read: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  // Whatever comes of it: only the time counts.
  await read().catch(() => {})
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

/**
 * Asserts that four times the input takes less than eight times as long: less than half of what a
 * square takes.
 */
async function assertGrowsSlowly(read: (length: number) => Promise<unknown>, name: string) {
  let times = ''
  for (const _ of [1, 2, 3]) {
    const long = await timeOf(() => read(4 * LENGTH))
    if (long < 8 * LEAST_MS) return
    const short = await timeOf(() => read(LENGTH))
    if (long < 8 * Math.max(short, LEAST_MS)) return
    times += ` ${short.toFixed()} and ${long.toFixed()} ms;`
  }
  assert.fail(
    `${name}: the time grows faster than the input, of ${LENGTH} and ${4 * LENGTH} characters:${times}`,
  )
}

describe('the time to read hostile input grows as the input does', () => {
  for (const format of formats.filter(({ name }) => name !== 'imessage' && name !== 'spreadsheet'))
    it(`in ${format.name}`, async () => {
      for (const part of HOSTILE)
        await assertGrowsSlowly(async (length) => {
          const text = part.repeat(length / part.length)
          const files = Object.entries(examples.get(format.name) ?? {}).map(([path, value]) => {
            const whole = typeof value === 'string' ? value : JSON.stringify(value)
            const written = /\.(txt|csv|eml)$/.test(path) ? text : JSON.stringify(text).slice(1, -1)
            return inputFile(
              path,
              whole.replaceAll(/\b(Hi|Hello|Good|Ada|ada|general|T)\b/g, () => written),
            )
          })
          await detectFormats([{ name: 'x', files }], formats)
          await readAll(format, files, { timezone: 'UTC', stripQuotes: true })
        }, JSON.stringify(part))
    })

  for (const name of HEADERS)
    it(`in the header ${name} of a mail`, async () => {
      for (const part of HOSTILE_HEADERS)
        await assertGrowsSlowly(async (length) => {
          const value = part.repeat(length / part.length)
          for (const start of ['a,', 'x <a@b> ', 'a/b; c="'])
            await readAll(
              mailFormat,
              [inputFile('1.eml', `${name}: ${start}${value}x\nX: x\n\nHello`)],
              {},
            )
        }, JSON.stringify(part))
    })
})
