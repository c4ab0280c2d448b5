import assert from 'node:assert/strict'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { describe, it } from 'node:test'
import { countWords } from './count-words.ts'
import { countWordsAsync, createSlices } from './count-words-async.ts'

const JAPANESE = '今日は良い天気ですから公園まで散歩に行きましょうと彼女は言った'
const LONGEST_QUOTE = JAPANESE.repeat(Math.ceil(100_000 / JAPANESE.length)).slice(0, 100_000)
// Wider than the bound of 50 ms, so that a busy machine fails nothing; without turns the eight hold it for 300 ms.
const HELD_AT_MOST_MS = 100

describe('countWordsAsync', () => {
  it('counts each text as countWords does, in their order', async () => {
    const texts = ['', 'one', 'two words', JAPANESE, 'สวัสดีชาวโลก']
    assert.deepEqual(await countWordsAsync(texts), texts.map(countWords))
  })

  it('counts a text the same however it is cut into slices', async () => {
    const slices = createSlices(0)
    assert.deepEqual(await countWordsAsync([JAPANESE.repeat(20)], { slices }), [countWords(JAPANESE.repeat(20))])
  })

  it('lets the event loop go between slices, however many counts run at once', async () => {
    await countWordsAsync([LONGEST_QUOTE])
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    const counts = await Promise.all(Array.from({ length: 8 }, () => countWordsAsync([LONGEST_QUOTE, 'one word'])))
    delay.disable()
    for (const [long, short] of counts) assert.deepEqual([long, short], [countWords(LONGEST_QUOTE), 2])
    assert.ok(delay.max / 1e6 < HELD_AT_MOST_MS, `the loop was held for ${delay.max / 1e6} ms`)
  })

  it('serves counts that run at once by turns, so that a short one does not wait for a long one', async () => {
    const finished: string[] = []
    await Promise.all([
      countWordsAsync([LONGEST_QUOTE.repeat(4)]).then(() => finished.push('long')),
      countWordsAsync([JAPANESE]).then(() => finished.push('short')),
    ])
    assert.deepEqual(finished, ['short', 'long'])
  })
})
