import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { countWords, createSlices } from './count-words.ts'

const JAPANESE = '今日は良い天気ですから公園まで散歩に行きましょうと彼女は言った'
const LONGEST_QUOTE = JAPANESE.repeat(Math.ceil(100_000 / JAPANESE.length)).slice(0, 100_000)
const SLICE = 10
const COUNTS = 8

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })
const wordsOf = (text: string) =>
  [...segmenter.segment(text)].filter(({ isWordLike }) => isWordLike).length

describe('countWords, of many texts or long ones,', () => {
  it('counts each text, in their order', async () => {
    const texts = ['', 'one', 'two words', JAPANESE, 'สวัสดีชาวโลก']
    assert.deepEqual(await countWords(texts, createSlices(SLICE)), texts.map(wordsOf))
  })

  it('counts a text the same however it is cut into slices', async () => {
    const slices = createSlices(0)
    assert.deepEqual(await countWords([JAPANESE.repeat(20)], slices), [
      wordsOf(JAPANESE.repeat(20)),
    ])
  })

  it('lets the event loop go between slices, however many counts run at once', async () => {
    // A clock of steps: each look at it is one, and a look precedes each step of a count.
    let steps = 0
    const slices = createSlices(SLICE, () => steps++)
    const turns = watchTurns(() => steps)
    const counts = await Promise.all(
      Array.from({ length: COUNTS }, () => countWords([LONGEST_QUOTE, 'one word'], slices)),
    )
    const { longest, count } = turns.stop()
    for (const [long, short] of counts) assert.deepEqual([long, short], [wordsOf(LONGEST_QUOTE), 2])
    assert.ok(count > 1_000, `${count} turns of the event loop`)
    // The slice, and a last step of each count.
    assert.ok(longest <= SLICE + 2 * COUNTS, `${longest} steps in one turn of the event loop`)
  })

  it('serves counts that run at once by turns, so that a short one does not wait for a long one', async () => {
    const slices = createSlices(SLICE)
    const finished: string[] = []
    await Promise.all([
      countWords([LONGEST_QUOTE.repeat(4)], slices).then(() => finished.push('long')),
      countWords([JAPANESE], slices).then(() => finished.push('short')),
    ])
    assert.deepEqual(finished, ['short', 'long'])
  })
})

/** Watches how far a clock goes in one turn of the event loop, at most. */
function watchTurns(clock: () => number) {
  let longest = 0
  let count = 0
  let began = clock()
  function look() {
    longest = Math.max(longest, clock() - began)
    count++
    began = clock()
    next = setImmediate(look)
  }
  let next = setImmediate(look)
  return {
    stop() {
      clearImmediate(next)
      return { longest: Math.max(longest, clock() - began), count }
    },
  }
}
