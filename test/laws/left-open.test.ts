import assert from 'node:assert/strict'
import { createBatchStore, processRuntime, type Runtime } from '@sluice/store'
import { describe, it } from 'vitest'
import { Death, type Fate, mortal } from './support/mortal.ts'
import { clockAhead, quickToSum } from './support/open-store.ts'
import { COMMIT, OPENING, openThreads, QUOTES, RECOUNT, WATERMARK } from './support/open-threads.ts'
import { PausedWriteFailed, pausedAt } from './support/paused-at.ts'
import { storeOnce } from './support/store-all.ts'

// Histories of processes that die, fail or are paused while they write a thread, step by step on
// the real server: which of their tokens are left, and that the totals are exact.

/** A source with a token this old is summed. */
const STALE_MS = 10_000
/** A token this old is removed. */
const EXPIRED_MS = 120_000

describe('a thread with the token of a process that died, failed or was paused', () => {
  const { db, commands, aThread, repairLater, countSums } = openThreads('left_open')

  it('is summed while the token is stale, at most once in ten seconds, and loses the token after 120 seconds', async () => {
    const { says, found } = aThread()
    await assert.rejects(
      storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]),
      Death,
    )
    const open = [says(1).id]
    const sumsAfter = (ms: number, place: number) =>
      countSums(() => storeOnce(commands, [says(place, `q${place + 1}`)], clockAhead(ms)))
    assert.equal(await sumsAfter(STALE_MS - 2_000, 2), 0)
    assert.deepEqual(await found(), { quotes: 3, words: 6, open }, 'ahead of its quotes by q2')
    assert.equal(await sumsAfter(STALE_MS, 3), 1)
    assert.deepEqual(await found(), { quotes: 3, words: 6, open })
    assert.equal(await sumsAfter(2 * STALE_MS - 2_000, 4), 0)
    assert.deepEqual(await found(), { quotes: 4, words: 8, open })
    assert.equal(await sumsAfter(2 * STALE_MS + 2_000, 5), 1)
    assert.deepEqual(await found(), { quotes: 5, words: 10, open })
    assert.equal(await sumsAfter(EXPIRED_MS, 6), 1)
    assert.deepEqual(await found(), { quotes: 6, words: 12, open: [] })
  })

  it('is summed when the request is redelivered, and loses the token of the earlier delivery', async () => {
    const { says, found } = aThread()
    await assert.rejects(
      storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]),
      Death,
    )
    const worker = createBatchStore(commands)
    const sums = await countSums(async () => {
      assert.equal((await worker.store([{ ...says(1, 'q1', 'q2'), redelivered: true }])).size, 1)
      await worker.settle()
    })
    assert.equal(sums, 1)
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [] })
  })

  it('has exact totals if two processes store it beside a dead one, and the second one stores it before the first one commits', async () => {
    const { says, found } = aThread()
    await assert.rejects(
      storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]),
      Death,
    )
    const slow = pausedAt(commands, COMMIT)
    const first = createBatchStore(slow.commands, clockAhead(STALE_MS))
    const storing = first.store([says(2, 'q3')])
    await slow.reached
    const early = createBatchStore(commands, clockAhead(STALE_MS))
    assert.equal((await early.store([says(3, 'q4')])).size, 0, 'another process sums it')
    await storeOnce(commands, [says(3, 'q4')], clockAhead(2 * STALE_MS))
    slow.release()
    assert.equal((await storing).size, 1)
    await first.settle()
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [says(1).id] })
  })

  it('keeps the token of a process that opens it just before another one reserves it for a sum', async () => {
    const { says, found } = aThread()
    await assert.rejects(
      storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]),
      Death,
    )
    const [slow, slower] = [pausedAt(commands, OPENING), pausedAt(commands, QUOTES)]
    const first = createBatchStore(slow.commands, clockAhead(STALE_MS))
    const second = createBatchStore(slower.commands)
    const storing = first.store([says(2, 'q3')])
    await slow.reached
    const opened = second.store([says(3, 'q4')])
    await slower.reached
    slow.release()
    assert.equal((await storing).size, 1)
    await first.settle()
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [says(1).id, says(3).id] })
    slower.release()
    await opened
    await second.settle()
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [says(1).id] })
  })

  it('has exact totals if the first process wrote all quotes and died before it raised its watermark', async () => {
    const { says, found } = aThread()
    const slow = pausedAt(mortal(commands, { atWrite: WATERMARK, share: 0 }), QUOTES)
    const first = createBatchStore(slow.commands)
    const storing = first.store([says(1, 'q1', 'q2')])
    await slow.reached
    await storeOnce(commands, [says(2, 'q3')])
    slow.release()
    await storing
    await assert.rejects(first.settle(), Death)
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [says(1).id] })
    await storeOnce(commands, [says(3, 'q4')])
    assert.deepEqual(await found(), { quotes: 4, words: 8, open: [says(1).id] })
  })

  /**
   * A process must recount because another one summed the thread while it wrote its quotes. It dies
   * at this write. Its request is the second.
   */
  async function dyingAmidRecount(fate: Fate) {
    const { says, found } = aThread()
    await assert.rejects(
      storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]),
      Death,
    )
    const slow = pausedAt(mortal(commands, fate), QUOTES)
    const first = createBatchStore(slow.commands, quickToSum)
    const storing = first.store([says(2, 'q3')])
    await slow.reached
    await storeOnce(commands, [{ ...says(1, 'q1', 'q2'), redelivered: true }], quickToSum)
    slow.release()
    await storing
    await assert.rejects(first.settle(), Death)
    return { says, found }
  }

  it('is summed if the first process wrote all quotes and died before it recounted', async () => {
    const { says, found } = await dyingAmidRecount({ atWrite: RECOUNT.reservation, share: 0 })
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [says(2).id] })
    await storeOnce(commands, [says(3, 'q4')], clockAhead(STALE_MS))
    assert.deepEqual(await found(), { quotes: 4, words: 8, open: [says(2).id] })
  })

  /** The request of a token that keeps others from a source while it is recounted. */
  const RECOUNTS = ''
  for (const [name, atWrite] of Object.entries(RECOUNT)) {
    for (const share of [0, 1]) {
      it(`is summed if the first process died ${share === 0 ? 'before' : 'after'} it wrote the ${name} of its recount`, async () => {
        const { says, found } = await dyingAmidRecount({ atWrite, share })
        const isReserved = atWrite > RECOUNT.reservation || share === 1
        const open = [says(2).id, ...(isReserved ? [RECOUNTS] : [])]
        const isDone = atWrite === RECOUNT.totals && share === 1
        if (isDone) assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
        else assert.deepEqual((await found()).open, open)
        await storeOnce(commands, [says(3, 'q4')], clockAhead(STALE_MS))
        assert.deepEqual(await found(), { quotes: 4, words: 8, open: isDone ? [] : open })
      })
    }
  }

  for (const [place, what] of [
    [OPENING, 'opened it'],
    [QUOTES, 'wrote the quotes'],
    [WATERMARK, 'raised its watermark'],
  ] as const) {
    it(`has exact totals if a process was paused before it ${what} until a repair removed its token`, async () => {
      const { says, found } = aThread()
      await storeOnce(commands, [says(1, 'q0')])
      const slow = pausedAt(commands, place)
      const first = createBatchStore(slow.commands)
      const storing = first.store([says(2, 'q1', 'q2')])
      const settling = place === WATERMARK ? storing.then(() => first.settle()) : undefined
      await slow.reached
      await repairLater()
      assert.deepEqual((await found()).open, [])
      slow.release()
      await storing
      await settling
      await first.settle()
      assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
    })
  }

  it('gets no quotes from a process that was paused for more than 30 s after the opening', async () => {
    const { says, found } = aThread()
    await storeOnce(commands, [says(1, 'q0')])
    let paused = 0
    const slow = pausedAt(commands, OPENING)
    const runtime: Runtime = { ...processRuntime, monotonic: () => performance.now() + paused }
    const storing = createBatchStore(slow.commands, runtime).store([says(2, 'q1')])
    await slow.reached
    paused = 30_001
    slow.release()
    await assert.rejects(storing, /took more than 30 s/)
    await repairLater()
    assert.deepEqual(await found(), { quotes: 1, words: 2, open: [] })
  })

  it('has all quotes after a half-written request is redelivered, even if a repair removed its token', async () => {
    const { says, found } = aThread()
    await assert.rejects(
      storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]),
      Death,
    )
    await repairLater()
    assert.deepEqual(await found(), { quotes: 1, words: 2, open: [] })
    await storeOnce(commands, [{ ...says(1, 'q1', 'q2'), redelivered: true }])
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [] })
  })

  it('has exact totals after a request failed for good, and keeps its token for a late write', async () => {
    const { says, found } = aThread()
    await assert.rejects(
      storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]),
      Death,
    )
    await createBatchStore(commands).recountRequests([says(1, 'q1', 'q2')])
    assert.deepEqual(await found(), { quotes: 1, words: 2, open: [says(1).id] })
  })

  it('is stored by its process although the document of the writer was removed, and then has no open token', async () => {
    const { says, found } = aThread()
    const worker = createBatchStore(commands)
    await worker.store([says(1, 'q1')])
    await worker.settle()
    await db.collection('writers').deleteMany({})
    await worker.store([says(2, 'q2')])
    await worker.store([aThread().says(3, 'q1')])
    await worker.settle()
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [] })
  })

  it('is stored by another process although the document of the writer was removed', async () => {
    const { says, found } = aThread()
    const worker = createBatchStore(commands)
    await worker.store([says(1, 'q1')])
    await worker.settle()
    await db.collection('writers').deleteMany({})
    await storeOnce(commands, [says(2, 'q2')])
    assert.deepEqual(
      await found(),
      { quotes: 2, words: 4, open: [says(1).id] },
      'the writer has no watermark',
    )
    await worker.store([aThread().says(3, 'q1')])
    await worker.settle()
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [] })
  })

  it('keeps an open token if the first process failed and went on; the threads that it stores later do not', async () => {
    const [failed, later] = [aThread(), aThread()]
    const slow = pausedAt(commands, QUOTES)
    const worker = createBatchStore(slow.commands)
    const storing = worker.store([failed.says(1, 'q1', 'q2')])
    await slow.reached
    slow.fail()
    await assert.rejects(storing, PausedWriteFailed)
    await worker.store([later.says(2, 'q1')])
    await worker.settle()
    assert.deepEqual((await failed.found()).open, [failed.says(1).id])
    assert.deepEqual(await later.found(), { quotes: 1, words: 2, open: [] })
    await storeOnce(commands, [failed.says(3, 'q3')])
    assert.deepEqual(await failed.found(), { quotes: 3, words: 6, open: [failed.says(1).id] })
    await storeOnce(commands, [failed.says(4, 'q4')], clockAhead(STALE_MS))
    assert.deepEqual(await failed.found(), { quotes: 2, words: 4, open: [failed.says(1).id] })
  })
})
