import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { inputFile } from '../read-all.test-support.ts'
import { readLines } from './read-lines.ts'

async function linesOf(content: string | Buffer, longest?: number) {
  const found = []
  for await (const lines of readLines(inputFile('a', content), longest)) found.push(...lines)
  return found
}

describe('reading lines gives', () => {
  it('each line with its number, without blank ones, whatever ends them', async () => {
    const lines = await linesOf('a\r\n\n  \nbcdef\ng')
    assert.deepEqual(
      lines.map(({ line, bytes }) => [line, bytes.toString()]),
      [
        [1, 'a\r'],
        [4, 'bcdef'],
        [5, 'g'],
      ],
    )
    assert.deepEqual(await linesOf(''), [])
  })

  it('the beginning of a line that is too long, and the lines around it', async () => {
    const lines = await linesOf(`a\n${'b'.repeat(2_000)}\nc\n${'d'.repeat(2_000)}`, 1_500)
    assert.deepEqual(
      lines.map(({ line, isTooLong }) => [line, isTooLong]),
      [
        [1, false],
        [2, true],
        [3, false],
        [4, true],
      ],
    )
  })

  it('lines of a file in UTF-16 with a byte order mark, and of one in UTF-8', async () => {
    const text = '\ufeffGröße\n😀'
    for (const bytes of [Buffer.from(text), Buffer.from(text, 'utf16le'), Buffer.from(text, 'utf16le').swap16()])
      assert.deepEqual(
        (await linesOf(bytes)).map((line) => line.bytes.toString()),
        ['Größe', '😀'],
      )
  })
})
