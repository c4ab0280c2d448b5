import assert from 'node:assert/strict'
import { createBatchStore, repairSources, type StoreRequest } from '@sluice/store'
import { describe, it } from 'vitest'
import { aThread as aNewThread } from './support/a-thread.ts'
import { HeldWriteFailed, held } from './support/held.ts'
import { liveTokens } from './support/live-tokens.ts'
import { Death, mortal } from './support/mortal.ts'
import { openStore, storeOnce } from './support/open-store.ts'

/** A writer's writes: it names itself, opens the source, writes the quotes, closes the batch. */
const [OPENING, QUOTES, CLOSING] = [2, 3, 4]

describe('a thread that one writer comes upon while another writes it', () => {
  const { store } = openStore('contested')

  function aThread() {
    const { says: saysQuotes, sourceId: _id } = aNewThread()
    const says = (place: number, ...externalIds: string[]): StoreRequest =>
      saysQuotes(place, ...externalIds.map((externalId) => ({ externalId, text: 'two words' })))
    async function found() {
      const stored = await store.sources.findOne({ _id })
      assert(stored !== null)
      const live = await liveTokens(store.writers, stored)
      return { quotes: stored.quoteCount, words: stored.wordCount, live }
    }
    return { says, found }
  }

  for (const known of [false, true]) {
    const what = known ? 'a stored thread' : 'a new thread'
    it(`sums ${what} for itself, and so does the first one before it closes its batch`, async () => {
      const { says, found } = aThread()
      if (known) await storeOnce(store, [says(1, 'q0')])
      const slow = held(store, QUOTES)
      const first = createBatchStore(slow.store)
      const storing = first.store([says(2, 'q1', 'q2')])
      await slow.reached
      await storeOnce(store, [says(3, 'q3')])
      const before = known ? 1 : 0
      assert.deepEqual(await found(), { quotes: before + 1, words: 2 * before + 2, live: [says(2).id] })
      slow.release()
      await storing
      await first.close()
      assert.deepEqual(await found(), { quotes: before + 3, words: 2 * before + 6, live: [] })
    })
  }

  it('sums it when the first one had written all and died before it could close its batch', async () => {
    const { says, found } = aThread()
    const slow = held(mortal(store, { atWrite: QUOTES + 1, share: 0 }), QUOTES)
    const first = createBatchStore(slow.store)
    const storing = first.store([says(1, 'q1', 'q2')])
    await slow.reached
    await storeOnce(store, [says(2, 'q3')])
    slow.release()
    await storing
    await assert.rejects(first.close(), Death)
    assert.deepEqual((await found()).live, [says(1).id])
    await storeOnce(store, [says(3, 'q4')])
    assert.deepEqual(await found(), { quotes: 4, words: 8, live: [says(1).id] })
  })

  it('is summed by a third one that opened it before the first one summed it for the second', async () => {
    const { says, found } = aThread()
    const [slow, slower] = [held(store, CLOSING), held(store, QUOTES)]
    const [first, third] = [createBatchStore(slow.store), createBatchStore(slower.store)]
    await first.store([says(1, 'q1', 'q2')])
    const closing = first.close()
    await slow.reached
    await storeOnce(store, [{ ...says(1, 'q1', 'q2'), redelivered: true }])
    const storing = third.store([says(2, 'q3')])
    await slower.reached
    slow.release()
    await closing
    slower.release()
    await storing
    await third.close()
    assert.deepEqual(await found(), { quotes: 3, words: 6, live: [] })
  })

  it('is met by another batch of the same writer no otherwise', async () => {
    const { says, found } = aThread()
    const slow = held(store, QUOTES)
    const worker = createBatchStore(slow.store)
    const storing = worker.store([says(1, 'q1', 'q2')])
    await slow.reached
    await worker.store([says(2, 'q3')])
    slow.release()
    await storing
    await worker.close()
    assert.deepEqual(await found(), { quotes: 3, words: 6, live: [] })
  })

  it('is read again by a writer that was held up before it could open it', async () => {
    const { says, found } = aThread()
    await storeOnce(store, [says(1, 'q0')])
    const slow = held(store, OPENING)
    const first = createBatchStore(slow.store)
    const storing = first.store([says(2, 'q1')])
    await slow.reached
    await storeOnce(store, [says(3, 'q2')])
    slow.release()
    await storing
    await first.close()
    assert.deepEqual(await found(), { quotes: 3, words: 6, live: [] })
  })

  for (const place of [OPENING, QUOTES, CLOSING]) {
    it(`is summed again by one that was paused before write ${place} for so long that a repair took its token off`, async () => {
      const { says, found } = aThread()
      await storeOnce(store, [says(1, 'q0')])
      const slow = held(store, place)
      const first = createBatchStore(slow.store)
      const storing = first.store([says(2, 'q1', 'q2')])
      const closing = place === CLOSING ? storing.then(() => first.close()) : undefined
      await slow.reached
      await repairSources(store, { repair: true, now: Date.now() + 120_000 })
      assert.deepEqual((await found()).live, [])
      slow.release()
      await storing
      await closing
      await first.close()
      assert.deepEqual(await found(), { quotes: 3, words: 6, live: [] })
    })
  }

  it('is summed by a request that failed half and is delivered again after a repair took its token off', async () => {
    const { says, found } = aThread()
    await assert.rejects(storeOnce(mortal(store, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]), Death)
    await repairSources(store, { repair: true, now: Date.now() + 120_000 })
    await storeOnce(store, [{ ...says(1, 'q1', 'q2'), redelivered: true }])
    assert.deepEqual(await found(), { quotes: 2, words: 4, live: [] })
  })

  it('can be stored though the document of its writer is gone', async () => {
    const { says, found } = aThread()
    const worker = createBatchStore(store)
    await worker.store([says(1, 'q1')])
    await store.writers.deleteMany({})
    await worker.store([says(2, 'q2')])
    await worker.store([aThread().says(3, 'q1')])
    await worker.close()
    const { live, ...totals } = await found()
    assert.deepEqual(totals, { quotes: 2, words: 4 })
    assert.deepEqual(live, [says(1).id], 'nobody can tell')
  })

  it('stays suspect where the first one failed and went on, and only that thread does', async () => {
    const [failed, later] = [aThread(), aThread()]
    const slow = held(store, QUOTES)
    const worker = createBatchStore(slow.store)
    const storing = worker.store([failed.says(1, 'q1', 'q2')])
    await slow.reached
    slow.fail()
    await assert.rejects(storing, HeldWriteFailed)
    await worker.store([later.says(2, 'q1')])
    await worker.close()
    assert.deepEqual((await failed.found()).live, [failed.says(1).id])
    assert.deepEqual(await later.found(), { quotes: 1, words: 2, live: [] })
    await storeOnce(store, [failed.says(3, 'q3')])
    assert.deepEqual(await failed.found(), { quotes: 1, words: 2, live: [failed.says(1).id] })
  })
})
