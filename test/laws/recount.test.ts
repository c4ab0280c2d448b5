import assert from 'node:assert/strict'
import { createBatchStore } from '@sluice/store'
import { describe, it } from 'vitest'
import { held } from './support/held.ts'
import { MARK, OPENING, openThreads, QUOTES, TOTALS, WATERMARK } from './support/open-threads.ts'
import { storeAll, storeOnce } from './support/store-all.ts'

// Histories of two or three living processes that write one thread, step by step on the real server: open tokens and totals are as the write protocol promises.

describe('a thread that one process meets while another writes it', () => {
  const { commands, aThread, repairLater } = openThreads('recount')

  for (const known of [false, true]) {
    const what = known ? 'a stored thread' : 'a new thread'
    const before = known ? 1 : 0

    it(`sums ${what} that is overdue, and so does the first process before it raises its watermark`, async () => {
      const { says, found } = aThread()
      if (known) await storeOnce(commands, [says(1, 'q0')])
      const slow = held(commands, QUOTES)
      const first = createBatchStore(slow.commands)
      const storing = first.store([says(2, 'q1', 'q2')])
      await slow.reached
      await storeOnce(commands, [says(3, 'q3')])
      assert.deepEqual(await found(), { quotes: before + 1, words: 2 * before + 2, open: [says(2).id] })
      slow.release()
      await storing
      await first.close()
      assert.deepEqual(await found(), { quotes: before + 3, words: 2 * before + 6, open: [] })
    })

    it(`leaves ${what} to the first process, and stores it when that is done`, async () => {
      const { says, found } = aThread()
      if (known) await storeOnce(commands, [says(1, 'q0')])
      const slow = held(commands, QUOTES)
      const first = createBatchStore(slow.commands)
      const storing = first.store([says(2, 'q1', 'q2')])
      await slow.reached
      const second = createBatchStore(commands)
      assert.equal((await second.store([says(3, 'q3')])).size, 0)
      assert.deepEqual(await found(), { quotes: before + 2, words: 2 * before + 4, open: [says(2).id] })
      slow.release()
      await storing
      await first.close()
      assert.equal((await second.store([says(3, 'q3')])).size, 1)
      await second.close()
      assert.deepEqual(await found(), { quotes: before + 3, words: 2 * before + 6, open: [] })
    })
  }

  it('is right where a third process opens it after the first looked at its version and before the watermark', async () => {
    const { says, found } = aThread()
    const [slow, slower] = [held(commands, WATERMARK), held(commands, QUOTES)]
    const [first, third] = [createBatchStore(slow.commands), createBatchStore(slower.commands)]
    await first.store([says(1, 'q1', 'q2')])
    const closing = first.close()
    await slow.reached
    await storeOnce(commands, [{ ...says(1, 'q1', 'q2'), redelivered: true }])
    const storing = third.store([says(2, 'q3')])
    await slower.reached
    slow.release()
    await closing
    slower.release()
    await storing
    await third.close()
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
  })

  /** The first process recounts, as a second one moved the thread while the first wrote its quotes; it is held at this write of the recount. */
  async function recounting(atWrite: number) {
    const { says, found } = aThread()
    const slow = held(commands, QUOTES)
    const slower = held(slow.commands, atWrite)
    const first = createBatchStore(slower.commands)
    const storing = first.store([says(1, 'q1', 'q2')])
    await slow.reached
    await storeOnce(commands, [says(2, 'q3')])
    slow.release()
    await storing
    const closing = first.close()
    await slower.reached
    return { says, found, closing, release: slower.release }
  }

  it('keeps the token of a third process that opens it before the first marks it for its recount', async () => {
    const { says, found, closing, release } = await recounting(MARK)
    const slow = held(commands, QUOTES)
    const third = createBatchStore(slow.commands)
    const storing = third.store([{ ...says(3, 'q4'), isOverdue: true }])
    await slow.reached
    release()
    await closing
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [says(3).id] })
    slow.release()
    await storing
    await third.close()
    assert.deepEqual(await found(), { quotes: 4, words: 8, open: [] })
  })

  for (const [place, what] of [
    [MARK, 'marks it'],
    [TOTALS, 'writes the sum'],
  ] as const) {
    it(`is right where a third process stores it before the first ${what} in its recount`, async () => {
      const { says, found, closing, release } = await recounting(place)
      await storeOnce(commands, [says(3, 'q4')])
      release()
      await closing
      assert.deepEqual(await found(), { quotes: 4, words: 8, open: [] })
    })

    it(`is right where a repair recounts it before the first ${what} in its recount`, async () => {
      const { found, closing, release } = await recounting(place)
      await repairLater()
      assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
      release()
      await closing
      assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
    })
  }

  it('is met by another batch of the same process in the same way', async () => {
    const { says, found } = aThread()
    const slow = held(commands, QUOTES)
    const worker = createBatchStore(slow.commands)
    const storing = worker.store([says(1, 'q1', 'q2')])
    await slow.reached
    assert.equal((await worker.store([says(2, 'q3')])).size, 0)
    await storeAll(worker, [says(2, 'q3')])
    assert.deepEqual(await found(), { quotes: 1, words: 2, open: [says(1).id] })
    slow.release()
    await storing
    await worker.close()
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
  })

  // Once, the first process took the version that its own second batch had set for one that nobody moved, and never summed the thread.
  it('is right where another process sums it amid the second of two batches of the first', async () => {
    const { says, found } = aThread()
    const slow = held(commands, WATERMARK + QUOTES)
    const first = createBatchStore(slow.commands)
    await first.store([says(1, 'q1')])
    const storing = first.store([says(2, 'q2', 'q3')])
    await slow.reached
    await storeOnce(commands, [says(3, 'q4')])
    slow.release()
    await storing
    await first.close()
    assert.deepEqual(await found(), { quotes: 4, words: 8, open: [] })
  })

  it('is read again by a process that was held up before it could open it', async () => {
    const { says, found } = aThread()
    await storeOnce(commands, [says(1, 'q0')])
    const slow = held(commands, OPENING)
    const first = createBatchStore(slow.commands)
    const storing = first.store([says(2, 'q1')])
    await slow.reached
    await storeOnce(commands, [says(3, 'q2')])
    slow.release()
    assert.equal((await storing).size, 1)
    await first.close()
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
  })
})
