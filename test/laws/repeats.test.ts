import assert from 'node:assert/strict'
import { type PostRequest, repairSources } from '@sluice/store'
import { describe, it } from 'vitest'
import { aThread as aNewThread } from './support/a-thread.ts'
import { Death, mortal } from './support/mortal.ts'
import { clockAhead, openStore, quickToSum } from './support/open-store.ts'
import { pausedAt } from './support/paused-at.ts'
import { storeOnce } from './support/store-all.ts'

// A repeat is recognised by its digest, and its quotes are not read. Each history here ends wrong
// if another request is mistaken for a repeat.

/** The writes of a process after it opened the source. */
const [QUOTES, WATERMARK] = [2, 3]

describe('a request that resembles a repeat', () => {
  const { commands, sources, quotes: quotesOf } = openStore('repeats')

  function aThread() {
    const { says, sourceId } = aNewThread()
    const quotes = () => quotesOf.find({ sourceId }).sort({ externalId: 1 }).toArray()
    return { says, quotes, source: () => sources.findOne({ _id: sourceId }) }
  }
  const store1 = (request: PostRequest, through = commands) => storeOnce(through, [request])
  /** Every current token is stale to this process, which therefore sums. */
  const storeLater = (request: PostRequest) => storeOnce(commands, [request], clockAhead(10_000))
  /** Every current token is expired to this repair. */
  const repairLater = () => repairSources(commands, { repair: true }, clockAhead(120_000))

  it('does not restamp the rest of the thread if it gives only a part', async () => {
    const { says, quotes } = aThread()
    const [q1, q2] = [
      { externalId: 'q1', text: 'one' },
      { externalId: 'q2', text: 'two' },
    ]
    await store1(says(1, q1, q2))
    await store1(says(2, q1))
    await store1(says(4, q1))
    await store1(says(3, { ...q2, text: 'late, but said after the first' }))
    assert.equal((await quotes())[1]?.text, 'late, but said after the first')
  })

  it('is merged again if another process writes one of many quotes that it restamps by one update', async () => {
    const { says, quotes } = aThread()
    const all = ['q1', 'q2', 'q3'].map((externalId) => ({ externalId, text: 'one' }))
    await store1(says(1, ...all))
    const restamping = pausedAt(commands, QUOTES)
    const restamped = store1(says(4, ...all.slice(1)), restamping.commands)
    await restamping.reached
    await store1(says(2, { externalId: 'q3', text: 'two' }))
    restamping.release()
    await restamped
    await store1(
      says(3, ...all.map((quote) => ({ ...quote, text: 'late, but said before the last' }))),
    )
    assert.deepEqual(
      (await quotes()).map(({ text }) => text),
      ['late, but said before the last', 'one', 'one'],
    )
  })

  it('does not restamp a field that it leaves out', async () => {
    const { says, quotes } = aThread()
    await store1(says(1, { externalId: 'q1', text: 'one', speaker: 'ann' }))
    await store1(says(2, { externalId: 'q1', text: 'one' }))
    await store1(says(4, { externalId: 'q1', text: 'one' }))
    await store1(says(3, { externalId: 'q1', text: 'one', speaker: 'bob' }))
    assert.equal((await quotes())[0]?.speaker, 'bob')
  })

  it('does not hide a request between two equal ones, in any order of processing', async () => {
    const { says, quotes } = aThread()
    const [one, two] = [
      { externalId: 'q1', text: 'one' },
      { externalId: 'q1', text: 'two' },
    ]
    await store1(says(1, one))
    await store1(says(3, one))
    await store1(says(2, two))
    assert.equal((await quotes())[0]?.text, 'one')
    await store1(says(4, two))
    await store1(says(5, one))
    assert.equal((await quotes())[0]?.text, 'one')
  })

  it('completes a thread that a dead writer left half-written, before and after a repair', async () => {
    for (const repairs of [false, true]) {
      const { says, quotes, source } = aThread()
      const both = [
        { externalId: 'q1', text: 'one' },
        { externalId: 'q2', text: 'two' },
      ]
      await assert.rejects(
        store1(says(1, ...both), mortal(commands, { atWrite: QUOTES, share: 0.5 })),
        Death,
      )
      if (repairs) await repairLater()
      await store1(says(2, ...both))
      await storeLater(says(3, ...both))
      assert.equal((await quotes()).length, 2)
      assert.equal((await source())?.quoteCount, 2)
    }
  })

  it('does not cover quotes of another request whose process died before its watermark', async () => {
    for (const fate of [
      { atWrite: QUOTES, share: 1 },
      { atWrite: WATERMARK, share: 0 },
    ]) {
      const { says, quotes } = aThread()
      const q1 = { externalId: 'q1', text: 'one' }
      await store1(says(1, q1))
      await assert.rejects(
        store1(says(2, { externalId: 'q2', text: 'two' }), mortal(commands, fate)),
        Death,
      )
      await repairLater()
      await store1(says(4, q1))
      await store1(says(3, { externalId: 'q2', text: 'late' }))
      assert.equal((await quotes())[1]?.text, 'late')
    }
  })

  it('does not cover a quote that a process wrote after a sum had missed it, before the process died', async () => {
    const { says, quotes } = aThread()
    const both = [
      { externalId: 'q1', text: 'one' },
      { externalId: 'q2', text: 'two' },
    ]
    await store1(says(1, ...both))
    const appending = pausedAt(mortal(commands, { atWrite: WATERMARK, share: 0 }), QUOTES)
    const appended = store1(says(2, { externalId: 'q3', text: 'three' }), appending.commands)
    await appending.reached
    await repairSources(commands, { repair: true }, clockAhead(10_000, quickToSum))
    appending.release()
    await assert.rejects(appended, Death)
    await storeOnce(commands, [says(3, ...both)], clockAhead(120_000))
    await store1(says(5, ...both))
    await store1(says(4, { externalId: 'q3', text: 'late, but said after the third' }))
    assert.equal((await quotes())[2]?.text, 'late, but said after the third')
  })
})
