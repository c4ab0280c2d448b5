import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { countAsciiWords, countWords, createSlices, SLICE_MS } from './count-words.ts'

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })
const reference = (text: string) =>
  [...segmenter.segment(text)].filter(({ isWordLike }) => isWordLike).length

describe('countWords', () => {
  const cases: [text: string, words: number, rule: string][] = [
    ['', 0, 'an empty text has none'],
    [' \r\n\t', 0, 'white space has none'],
    ['It is one.', 3, 'white space and full stops part words'],
    ["don't", 1, 'an apostrophe joins letters'],
    ["'quoted'", 1, 'a quotation mark joins nothing at the edge of a word'],
    ['1,000.5', 1, 'commas and full stops join digits'],
    ['a,b', 2, 'a comma parts letters'],
    ['a.b', 1, 'a full stop joins letters'],
    ['a.1', 2, 'a full stop parts a letter from a digit'],
    ['x:y 1:2', 3, 'a colon joins letters, and parts digits'],
    ['a_b', 1, 'an underscore joins'],
    ['_ __', 1, 'one underscore by itself is none, and two are a word'],
    ['a\0b', 2, 'a control character parts words'],
    ['Größe naïve', 2, 'letters with marks are letters'],
    ['สวัสดีชาวโลก', 3, 'Thai has words without spaces'],
    ['今日は良い天気です', 5, 'Japanese has words without spaces'],
    ['👍 ok', 1, 'an emoji is none'],
  ]
  for (const [text, words, rule] of cases)
    it(rule, async () =>
      assert.deepEqual(await countWords([text], createSlices(SLICE_MS)), [words]),
    )

  it('counts any ASCII text as the segmenter does', async () => {
    await fc.assert(fc.asyncProperty(hostileAscii, sameAsSegmenter), { numRuns: 40_000 })
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary-ascii', maxLength: 40 }), sameAsSegmenter),
      {
        numRuns: 10_000,
      },
    )
  })

  it('counts every ASCII text of three characters that the rules tell apart as the segmenter does', async () => {
    const kinds = [
      'a',
      'Z',
      '0',
      '_',
      ':',
      ',',
      ';',
      '.',
      "'",
      '"',
      ' ',
      '\r',
      '\n',
      '\0',
      '\x7f',
      '-',
      '@',
    ]
    for (const a of kinds)
      for (const b of kinds) for (const c of kinds) await sameAsSegmenter(`${a}${b}${c}x`)
  })

  it('counts any text as the segmenter does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 40 }), sameAsSegmenter),
      { numRuns: 5_000 },
    )
  })

  it('leaves what is beyond ASCII to the segmenter', () =>
    assert.equal(countAsciiWords('caf\u00e9'), undefined))
})

const hostileAscii = fc
  .array(
    fc.constantFrom(
      'a',
      'Zz',
      '0',
      '19',
      '_',
      '.',
      ',',
      ';',
      "'",
      ':',
      '"',
      ' ',
      '\r\n',
      '\n',
      '\t',
      '\0',
      '\x7f',
      '-',
      '/',
      '@',
      '$',
    ),
    { maxLength: 24 },
  )
  .map((pieces) => pieces.join(''))

const slices = createSlices(SLICE_MS)

async function sameAsSegmenter(text: string): Promise<void> {
  assert.deepEqual(await countWords([text], slices), [reference(text)], JSON.stringify(text))
}
