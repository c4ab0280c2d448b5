// Tests of the rule by which a mailbox is split, with the separators that programs write.
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { inputFile, readAll, recognises } from '../read-all.test-support.ts'
import { mailFormat } from './mail-format.ts'
import { type RawMail, splitMbox } from './split-mbox.ts'

const DATED = 'From ada@a.example Wed May  1 10:00:00 2024'
const mail = (id: number, text = `text ${id}`) =>
  `From: Ada <ada@a.example>\nMessage-ID: <${id}@a>\n\n${text}\n`

async function textsIn(file: string | Buffer): Promise<(string | undefined)[]> {
  const { pieces, rejected } = await readAll(mailFormat, [inputFile('inbox', file)])
  expect(rejected).toEqual([])
  return pieces.map(({ quotes }) => quotes[0]?.text)
}

describe('separates mails:', () => {
  test.each([
    ['Thunderbird', 'From '],
    ['Thunderbird before 2023', 'From - Wed May 01 10:00:00 2024'],
    ['an add-on of Thunderbird', 'From - Sat Apr 12 2025 15:59:28'],
    ['Google Groups', 'From -8946248053963490001'],
    ['a gateway', 'From ada@a.example Wed, 1 May 2024 10:00:00 +0000'],
    ['Eudora', 'From ???@??? Wed May 01 10:00:00 2024'],
    ['a mail without a sender', 'From MAILER-DAEMON Wed May  1 10:00:00 2024'],
    ['a program in Spanish', 'From - mié may 01 10:00:00 2024'],
    ['a program that writes ISO dates', 'From ada@a.example 2024-05-01T10:00:00Z'],
    ['a program that writes no date', 'From ada@a.example'],
    ['Git', 'From 1f0c2c1e5a7b9d3f1f0c2c1e5a7b9d3f1f0c2c1e Mon Sep 17 00:00:00 2001'],
  ])('the line of %s, %j', async (_, separator) => {
    const file = `${separator}\n${mail(1)}\n${separator}\n${mail(2)}`
    for (const newline of ['\n', '\r\n', '\r', '\r\r\n']) {
      const bytes = file.replaceAll('\n', newline)
      expect(await textsIn(bytes)).toEqual(['text 1', 'text 2'])
      expect(await recognises(mailFormat, inputFile('inbox', bytes))).toBe(true)
    }
  })

  test.each([
    ['no blank line before it', `${DATED}\n${mail(1)}${DATED}\n${mail(2)}`],
    ['no blank line before a bare one', `From \n${mail(1)}From \n${mail(2)}`],
    ['another form behind it', `${DATED}\n${mail(1)}\nFrom - Wed May 01 10:00:00 2024\n${mail(2)}`],
    ['a bare form behind it', `${DATED}\n${mail(1)}\nFrom \n${mail(2)}`],
    ['a blank line behind it', `${DATED}\n\n${mail(1)}\n${DATED}\n\n${mail(2)}`],
    [
      'a quoted separator behind it',
      `${DATED}\n>From - Wed\n${mail(1)}\n${DATED}\n>From ada Wed\n${mail(2)}`,
    ],
    [
      'a second separator behind it',
      `${DATED}\nFrom bo\n${mail(1)}\n${DATED}\nFrom bo\n${mail(2)}`,
    ],
    ['a blank line before the first', `\n\n${DATED}\n${mail(1)}\n${DATED}\n${mail(2)}`],
    ['a byte order mark before each', `\uFEFF${DATED}\n${mail(1)}\n\uFEFF${DATED}\n${mail(2)}`],
    [
      'a long signature behind it',
      `From \nDKIM-Signature: ${'a'.repeat(9_000)}\n${mail(1)}From \nArc-Seal: ${'b'.repeat(9_000)}\n${mail(2)}`,
    ],
    [
      'a header on its own line',
      `${DATED}MIME-Version: 1.0\n${mail(1)}${DATED}MIME-Version: 1.0\n${mail(2)}`,
    ],
    ['an unknown header behind it', `${DATED}\n${mail(1)}\n${DATED}\nOdd: header\n${mail(2)}`],
  ])('a line with %s', async (_, file) => {
    expect(await textsIn(file)).toEqual(['text 1', 'text 2'])
  })

  test('a line in a file that is UTF-16', async () => {
    const file = Buffer.from(`\uFEFF${DATED}\n${mail(1)}\n${DATED}\n${mail(2)}`, 'utf16le')
    expect(await textsIn(file)).toEqual(['text 1', 'text 2'])
  })
})

describe('is text:', () => {
  test.each([
    [
      'a sentence with a time and a year',
      'Plan:\n\nFrom 10:30 on Monday, 6 May 2024, it is off.\nPlease bake before.',
    ],
    [
      'a sentence before a header',
      'From 10:30 on Monday, 6 May 2024, it is off:\nSubject: the oven',
    ],
    ['a name before a header', 'Look:\n\nFrom Ada:\nTo: bo@a.example\nSubject: Oven'],
    ['an address before a header', 'Look:\n\nFrom ada@a.example\nTo: bo@a.example'],
    ['a date before a sentence', 'Look:\n\nFrom bo Wed May  1 10:00:00 2024\nIt is off.'],
    ['a date before a list', 'Look:\nFrom bo Wed May  1 10:00:00 2024\nOven: off'],
    ['a bare line before a list', 'Look:\n\nFrom \nOven: off'],
    [
      'a patch',
      `My patch:\n\nFrom ${'1f0c2c1e'.repeat(5)} Mon Sep 17 00:00:00 2001\nFrom: Cy\nSubject: [PATCH] x`,
    ],
    ['the end of a long line', `${'o'.repeat(5_000)}${DATED}\nFrom: Bo\nSubject: x`],
  ])('%s', async (_, text) => {
    expect(await textsIn(`${DATED}\n${mail(1, text)}\n${DATED}\n${mail(2)}`)).toEqual([
      text,
      'text 2',
    ])
  })

  test('an address without a blank line before it, in a file whose separators have no date', async () => {
    const text = 'See\nFrom bo@a.example\nTo: ada@a.example\nSubject: x'
    expect(await textsIn(`From ada@a.example\n${mail(1, text)}\nFrom bo\n${mail(2)}`)).toEqual([
      text,
      'text 2',
    ])
  })

  test('the end of a long line where a chunk begins', async () => {
    const chunks = [`${DATED}\n${mail(1, 'o'.repeat(5_000)).trimEnd()}`, `${DATED}\n${mail(2)}`]
    const mails: RawMail[] = []
    for await (const one of splitMbox(Readable.from(chunks.map((chunk) => Buffer.from(chunk)))))
      mails.push(one)
    expect(mails.map(({ line }) => line)).toEqual([2])
  })

  test('a header whose name is followed by a space', async () => {
    const file = `${DATED}\nFrom : Ada Wed May  1 10:00:00 2024\nSubject: x\n\ntext\n`
    expect(await textsIn(file)).toEqual(['text'])
  })
})
