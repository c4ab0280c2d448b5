import assert from 'node:assert/strict'
import { createBatchStore } from '@sluice/store'
import { describe, it } from 'vitest'
import { Death, mortal } from './support/mortal.ts'
import { clockAhead, quickToSum } from './support/open-store.ts'
import { EPOCH, OPENING, openThreads, QUOTES, RECOUNT, WATERMARK } from './support/open-threads.ts'
import { pausedAt } from './support/paused-at.ts'
import { storeOnce } from './support/store-all.ts'

// Histories of two or three living processes that write one thread, step by step on the real
// server: open tokens and totals are as the write protocol promises.

/** A token this old is stale: its writer counts as slow or dead. */
const STALE_MS = 10_000

describe('a thread that two processes write at the same time', () => {
  const { commands, aThread, repairLater, countSums } = openThreads('recount')

  /**
   * A thread in which a process died while it wrote the quotes of its first request, which is then
   * delivered again: q1 is stored, q2 is not.
   */
  async function interruptedThread() {
    const { says, found } = aThread()
    await assert.rejects(
      storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]),
      Death,
    )
    const redelivered = { ...says(1, 'q1', 'q2'), redelivered: true }
    return { says, found, redelivered }
  }

  for (const known of [false, true]) {
    const what = known ? 'a stored thread' : 'a new thread'
    const before = known ? 1 : 0

    it(`gets an append while the first process writes it, and neither process sums (${what})`, async () => {
      const { says, found } = aThread()
      if (known) await storeOnce(commands, [says(1, 'q0')])
      const slow = pausedAt(commands, QUOTES)
      const first = createBatchStore(slow.commands)
      const sums = await countSums(async () => {
        const storing = first.store([says(2, 'q1', 'q2')])
        await slow.reached
        const answers = await storeOnce(commands, [says(3, 'q3')])
        assert.equal(answers.get(says(3).id)?.source.wordCount, 2 * before + 6)
        assert.deepEqual(await found(), {
          quotes: before + 3,
          words: 2 * before + 6,
          open: [says(2).id],
        })
        slow.release()
        assert.equal((await storing).size, 1)
        await first.settle()
      })
      assert.deepEqual(await found(), { quotes: before + 3, words: 2 * before + 6, open: [] })
      assert.equal(sums, 0)
    })

    it(`is not stored while another process sums it, and is stored afterwards (${what})`, async () => {
      const { says, found, redelivered } = await interruptedThread()
      if (known) await storeOnce(commands, [says(2, 'q0')])
      const slow = pausedAt(commands, EPOCH)
      const first = createBatchStore(slow.commands)
      const second = createBatchStore(commands)
      const sums = await countSums(async () => {
        const storing = first.store([redelivered])
        await slow.reached
        const between = await found()
        assert.equal((await second.store([says(3, 'q3')])).size, 0)
        assert.deepEqual(await found(), between)
        slow.release()
        assert.equal((await storing).size, 1)
        await first.settle()
        assert.deepEqual(await found(), { quotes: before + 2, words: 2 * before + 4, open: [] })
        assert.equal((await second.store([says(3, 'q3')])).size, 1)
        await second.settle()
      })
      assert.deepEqual(await found(), { quotes: before + 3, words: 2 * before + 6, open: [] })
      assert.equal(sums, 1)
    })
  }

  it('is recounted by the first process if another one summed it while the first one wrote its quotes', async () => {
    const { says, found, redelivered } = await interruptedThread()
    const slow = pausedAt(commands, QUOTES)
    const first = createBatchStore(slow.commands)
    const storing = first.store([says(2, 'q3')])
    await slow.reached
    assert.equal(await countSums(() => storeOnce(commands, [redelivered], quickToSum)), 1)
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [says(2).id] })
    slow.release()
    const sums = await countSums(async () => {
      await storing
      await first.settle()
    })
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
    assert.equal(sums, 1)
  })

  it('is summed after the first process has written its quotes, if that happens within a second', async () => {
    const { says, found, redelivered } = await interruptedThread()
    const slow = pausedAt(commands, QUOTES)
    const first = createBatchStore(slow.commands)
    const storing = first.store([says(2, 'q3')])
    await slow.reached
    const reserved = Promise.withResolvers<void>()
    const update: typeof commands.update = async (name, statements) => {
      const written = await commands.update(name, statements)
      reserved.resolve()
      return written
    }
    const second = createBatchStore({ ...commands, update })
    const sums = await countSums(async () => {
      const stored = second.store([redelivered])
      await reserved.promise
      slow.release()
      await storing
      await first.settle()
      assert.equal((await stored).get(redelivered.id)?.source.wordCount, 6)
      await second.settle()
    })
    assert.equal(sums, 1)
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
  })

  it('is recounted while the first process writes it if another request failed for good', async () => {
    const { says, found } = await interruptedThread()
    const slow = pausedAt(commands, QUOTES)
    const first = createBatchStore(slow.commands)
    const storing = first.store([says(2, 'q3')])
    await slow.reached
    await createBatchStore(commands, quickToSum).recountRequests([says(1, 'q1', 'q2')])
    assert.deepEqual(await found(), { quotes: 1, words: 2, open: [says(1).id, says(2).id] })
    slow.release()
    await storing
    await first.settle()
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [says(1).id] })
  })

  it('has exact totals if a third process opens it after the first one checked its epoch and before the watermark', async () => {
    const { says, found } = aThread()
    const [slow, slower] = [pausedAt(commands, WATERMARK), pausedAt(commands, QUOTES)]
    const [first, third] = [createBatchStore(slow.commands), createBatchStore(slower.commands)]
    await first.store([says(1, 'q1', 'q2')])
    const settling = first.settle()
    await slow.reached
    await storeOnce(commands, [{ ...says(1, 'q1', 'q2'), redelivered: true }])
    const storing = third.store([says(2, 'q3')])
    await slower.reached
    slow.release()
    await settling
    slower.release()
    await storing
    await third.settle()
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
  })

  /**
   * The first process recounts because a second one summed the thread while the first one wrote its
   * quotes. It is paused at this write of the recount.
   */
  async function recounting(atWrite: number) {
    const { says, found, redelivered } = await interruptedThread()
    const slow = pausedAt(commands, QUOTES)
    const slower = pausedAt(slow.commands, atWrite)
    const first = createBatchStore(slower.commands, quickToSum)
    const storing = first.store([says(2, 'q3')])
    await slow.reached
    await storeOnce(commands, [redelivered], quickToSum)
    slow.release()
    await storing
    const settling = first.settle()
    await slower.reached
    return { says, found, settling, release: slower.release }
  }

  it('keeps the token of a third process that opens it before the first one reserves it for its recount', async () => {
    const { says, found, settling, release } = await recounting(RECOUNT.reservation)
    const slow = pausedAt(commands, QUOTES)
    const third = createBatchStore(slow.commands)
    const storing = third.store([says(3, 'q4')])
    await slow.reached
    release()
    await settling
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [says(3).id] })
    slow.release()
    await storing
    await third.settle()
    assert.deepEqual(await found(), { quotes: 4, words: 8, open: [] })
  })

  it('has exact totals if a third process stores it before the first one reserves it for its recount', async () => {
    const { says, found, settling, release } = await recounting(RECOUNT.reservation)
    await storeOnce(commands, [says(3, 'q4')])
    release()
    await settling
    assert.deepEqual(await found(), { quotes: 4, words: 8, open: [] })
  })

  for (const [place, what] of [
    [RECOUNT.epoch, 'sets the epoch'],
    [RECOUNT.totals, 'writes the sum'],
  ] as const) {
    it(`is stored by a third process after the recount if that process starts before the first one ${what}`, async () => {
      const { says, found, settling, release } = await recounting(place)
      const third = createBatchStore(commands)
      assert.equal((await third.store([says(3, 'q4')])).size, 0)
      release()
      await settling
      assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
      assert.equal((await third.store([says(3, 'q4')])).size, 1)
      await third.settle()
      assert.deepEqual(await found(), { quotes: 4, words: 8, open: [] })
    })

    it(`has exact totals if a third process considers the first one slow and stores it before the first one ${what} in its recount`, async () => {
      const { says, found, settling, release } = await recounting(place)
      assert.equal(
        await countSums(() => storeOnce(commands, [says(3, 'q4')], clockAhead(STALE_MS))),
        1,
      )
      release()
      await settling
      assert.deepEqual(await found(), { quotes: 4, words: 8, open: [] })
    })
  }

  for (const [place, what] of [
    [RECOUNT.reservation, 'reserves it'],
    [RECOUNT.epoch, 'sets the epoch'],
    [RECOUNT.totals, 'writes the sum'],
  ] as const) {
    it(`has exact totals if a repair recounts it before the first process ${what} in its recount`, async () => {
      const { found, settling, release } = await recounting(place)
      await repairLater()
      assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
      release()
      await settling
      assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
    })
  }

  it('has exact totals if two batches of one process write it at the same time', async () => {
    const { says, found } = aThread()
    const slow = pausedAt(commands, QUOTES)
    const worker = createBatchStore(slow.commands)
    const sums = await countSums(async () => {
      const storing = worker.store([says(1, 'q1', 'q2')])
      await slow.reached
      assert.equal((await worker.store([says(2, 'q3')])).size, 1)
      assert.deepEqual(await found(), { quotes: 3, words: 6, open: [says(1).id, says(2).id] })
      slow.release()
      await storing
      await worker.settle()
    })
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
    assert.equal(sums, 0)
  })

  // In a former version the first process mistook the version that its own second batch had set for
  // an unchanged one, and never summed the thread.
  for (const sums of [false, true]) {
    it(`has exact totals if another process ${sums ? 'sums' : 'stores'} it during the second of two batches of the first one`, async () => {
      const { says, found, redelivered } = await interruptedThread()
      if (!sums) await storeOnce(commands, [redelivered])
      const slow = pausedAt(commands, WATERMARK + QUOTES)
      const first = createBatchStore(slow.commands)
      await first.store([says(2, 'q3')])
      const storing = first.store([says(3, 'q4', 'q5')])
      await slow.reached
      const summed = await countSums(() =>
        storeOnce(commands, [sums ? redelivered : says(4, 'q6')], quickToSum),
      )
      assert.equal(summed, Number(sums))
      slow.release()
      await storing
      await first.settle()
      const quotes = sums ? 5 : 6
      assert.deepEqual(await found(), { quotes, words: 2 * quotes, open: [] })
    })
  }

  it('is read again by a process whose opening was refused', async () => {
    const { says, found } = aThread()
    await storeOnce(commands, [says(1, 'q0')])
    const slow = pausedAt(commands, OPENING)
    const first = createBatchStore(slow.commands)
    const storing = first.store([says(2, 'q1')])
    await slow.reached
    await storeOnce(commands, [says(3, 'q2')])
    slow.release()
    assert.equal((await storing).size, 1)
    await first.settle()
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
  })
})
