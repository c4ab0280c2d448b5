import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { inputFile } from '../read-all.test-support.ts'
import { LONGEST_RECORD_BYTES } from './bounded-bytes.ts'
import { readJsonLines } from './json-records.ts'

/** Returns the number, the reason and the text of each line. No line is JSON. */
async function linesOf(content: string | Buffer) {
  const found = []
  for await (const records of readJsonLines(inputFile('a', content))) found.push(...records)
  return found.map((one) => {
    assert.ok(one.kind === 'rejected')
    return { line: one.place.line, text: String(one.record), reason: one.reason }
  })
}

describe('reading lines gives', () => {
  it('each line with its number, without blank ones, whatever ends them', async () => {
    const lines = await linesOf('a\r\n\n  \nbcdef\ng')
    assert.deepEqual(
      lines.map(({ line, text }) => [line, text]),
      [
        [1, 'a\r'],
        [4, 'bcdef'],
        [5, 'g'],
      ],
    )
    assert.deepEqual(await linesOf(''), [])
  })

  it('the beginning of a line that is too long, and the lines around it', async () => {
    const [b, d] = ['b', 'd'].map((letter) => letter.repeat(LONGEST_RECORD_BYTES + 1))
    const lines = await linesOf(`a\n${b}\nc\n${d}`)
    assert.deepEqual(
      lines.map(({ line, text, reason }) => [
        line,
        text.length,
        reason.includes('longer than 33554432 bytes'),
      ]),
      [
        [1, 1, false],
        [2, 1_000, true],
        [3, 1, false],
        [4, 1_000, true],
      ],
    )
  })

  it('each root of a line that has several, because a program wrote no line ends', async () => {
    const found = []
    const content = '{"a":1}{"b":"}{"}\n[1] [2], "c"\n{"d":1}{"e":}\n{"f":1'
    for await (const records of readJsonLines(inputFile('a', content))) found.push(...records)
    assert.deepEqual(
      found.map((one) => [
        one.kind,
        one.place.line,
        one.kind === 'record' ? one.value : one.record,
      ]),
      [
        ['record', 1, { a: 1 }],
        ['record', 1, { b: '}{' }],
        ['record', 2, [1]],
        ['record', 2, [2]],
        ['record', 2, 'c'],
        ['record', 3, { d: 1 }],
        ['rejected', 3, '{"e":}'],
        ['rejected', 4, '{"f":1'],
      ],
    )
  })

  it('lines of a file in UTF-16 with a byte order mark, and of one in UTF-8', async () => {
    const text = '\ufeffGröße\n😀'
    for (const bytes of [
      Buffer.from(text),
      Buffer.from(text, 'utf16le'),
      Buffer.from(text, 'utf16le').swap16(),
    ])
      assert.deepEqual(
        (await linesOf(bytes)).map(({ text }) => text),
        ['Größe', '😀'],
      )
  })
})
