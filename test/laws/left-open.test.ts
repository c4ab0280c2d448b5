import assert from 'node:assert/strict'
import { createBatchStore, processRuntime, type Runtime } from '@sluice/store'
import { describe, it } from 'vitest'
import { HeldWriteFailed, held } from './support/held.ts'
import { Death, mortal } from './support/mortal.ts'
import { clockAhead } from './support/open-store.ts'
import { COMMIT, OPENING, openThreads, QUOTES, TOTALS, WATERMARK } from './support/open-threads.ts'
import { storeOnce } from './support/store-all.ts'

// Histories of processes that die, fail or are paused while they write a thread, step by step on the real server: what is left of their tokens, and that the totals are right beside them.

/** A token this old is not waited for. */
const BUSY_MS = 10_000

describe('a thread in which a process that died, failed or was paused left its token', () => {
  const { db, commands, aThread, repairLater } = openThreads('left_open')

  it('waits for a token of the last ten seconds, and for none that is older', async () => {
    const { says, found } = aThread()
    await assert.rejects(storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]), Death)
    const early = createBatchStore(commands, clockAhead(BUSY_MS - 2_000))
    assert.equal((await early.store([says(2, 'q3')])).size, 0)
    const late = createBatchStore(commands, clockAhead(BUSY_MS))
    assert.equal((await late.store([says(2, 'q3')])).size, 1)
    await late.close()
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [says(1).id] })
  })

  it('does not wait for its own token of an earlier delivery', async () => {
    const { says, found } = aThread()
    await assert.rejects(storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]), Death)
    const worker = createBatchStore(commands)
    assert.equal((await worker.store([{ ...says(1, 'q1', 'q2'), redelivered: true }])).size, 1)
    await worker.close()
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [] })
  })

  it('is right where two processes store it beside a dead one, and the second stores it before the first commits', async () => {
    const { says, found } = aThread()
    await assert.rejects(storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]), Death)
    const slow = held(commands, COMMIT)
    const first = createBatchStore(slow.commands)
    const storing = first.store([{ ...says(2, 'q3'), isOverdue: true }])
    await slow.reached
    await storeOnce(commands, [says(3, 'q4')])
    slow.release()
    assert.equal((await storing).size, 1)
    await first.close()
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [says(1).id] })
  })

  it('keeps the token of a process that opens it beside a dead one while another is about to open it', async () => {
    const { says, found } = aThread()
    await assert.rejects(storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]), Death)
    const [slow, slower] = [held(commands, OPENING), held(commands, QUOTES)]
    const [first, second] = [createBatchStore(slow.commands), createBatchStore(slower.commands)]
    const storing = first.store([{ ...says(2, 'q3'), isOverdue: true }])
    await slow.reached
    const opened = second.store([{ ...says(3, 'q4'), isOverdue: true }])
    await slower.reached
    slow.release()
    assert.equal((await storing).size, 1)
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [says(1).id, says(3).id] })
    slower.release()
    await opened
    await Promise.all([first.close(), second.close()])
    assert.deepEqual(await found(), { quotes: 3, words: 6, open: [says(1).id] })
  })

  it('sums it when the first process had written all and died before it recounted', async () => {
    const { says, found } = aThread()
    const slow = held(mortal(commands, { atWrite: QUOTES + 1, share: 0 }), QUOTES)
    const first = createBatchStore(slow.commands)
    const storing = first.store([says(1, 'q1', 'q2')])
    await slow.reached
    await storeOnce(commands, [says(2, 'q3')])
    slow.release()
    await storing
    await assert.rejects(first.close(), Death)
    assert.deepEqual((await found()).open, [says(1).id])
    await storeOnce(commands, [says(3, 'q4')])
    assert.deepEqual(await found(), { quotes: 4, words: 8, open: [says(1).id] })
  })

  it('sums it when the first process died amid its recount', async () => {
    for (const share of [0, 1]) {
      const { says, found } = aThread()
      const slow = held(mortal(commands, { atWrite: TOTALS, share }), QUOTES)
      const first = createBatchStore(slow.commands)
      const storing = first.store([says(1, 'q1', 'q2')])
      await slow.reached
      await storeOnce(commands, [says(2, 'q3')])
      slow.release()
      await storing
      await assert.rejects(first.close(), Death)
      await storeOnce(commands, [says(3, 'q4')])
      const open = share === 0 ? [says(1).id] : []
      assert.deepEqual(await found(), { quotes: 4, words: 8, open })
    }
  })

  for (const [place, what] of [
    [OPENING, 'opened it'],
    [QUOTES, 'wrote the quotes'],
    [WATERMARK, 'raised its watermark'],
  ] as const) {
    it(`is right where a process was paused before it ${what} for so long that a repair took its token off`, async () => {
      const { says, found } = aThread()
      await storeOnce(commands, [says(1, 'q0')])
      const slow = held(commands, place)
      const first = createBatchStore(slow.commands)
      const storing = first.store([says(2, 'q1', 'q2')])
      const closing = place === WATERMARK ? storing.then(() => first.close()) : undefined
      await slow.reached
      await repairLater()
      assert.deepEqual((await found()).open, [])
      slow.release()
      await storing
      await closing
      await first.close()
      assert.deepEqual(await found(), { quotes: 3, words: 6, open: [] })
    })
  }

  it('gets no quotes from a process that was paused for more than 30 s after it opened it', async () => {
    const { says, found } = aThread()
    await storeOnce(commands, [says(1, 'q0')])
    let paused = 0
    const slow = held(commands, OPENING)
    const runtime: Runtime = { ...processRuntime, monotonic: () => performance.now() + paused }
    const storing = createBatchStore(slow.commands, runtime).store([says(2, 'q1')])
    await slow.reached
    paused = 30_001
    slow.release()
    await assert.rejects(storing, /paused for more than 30 s/)
    await repairLater()
    assert.deepEqual(await found(), { quotes: 1, words: 2, open: [] })
  })

  it('is whole after a request that failed half is delivered again, though a repair took its token off', async () => {
    const { says, found } = aThread()
    await assert.rejects(storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]), Death)
    await repairLater()
    assert.deepEqual(await found(), { quotes: 1, words: 2, open: [] })
    await storeOnce(commands, [{ ...says(1, 'q1', 'q2'), redelivered: true }])
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [] })
  })

  it('agrees with its quotes after a request that failed for good, and keeps its token for a late write', async () => {
    const { says, found } = aThread()
    await assert.rejects(storeOnce(mortal(commands, { atWrite: QUOTES, share: 0.5 }), [says(1, 'q1', 'q2')]), Death)
    await createBatchStore(commands).reconcile([says(1, 'q1', 'q2')])
    assert.deepEqual(await found(), { quotes: 1, words: 2, open: [says(1).id] })
  })

  it('can be stored by its process though the document of that is gone, and then nothing is open', async () => {
    const { says, found } = aThread()
    const worker = createBatchStore(commands)
    await worker.store([says(1, 'q1')])
    await worker.close()
    await db.collection('writers').deleteMany({})
    await worker.store([says(2, 'q2')])
    await worker.store([aThread().says(3, 'q1')])
    await worker.close()
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [] })
  })

  it('is summed by another process where the document of its writer is gone', async () => {
    const { says, found } = aThread()
    const worker = createBatchStore(commands)
    await worker.store([says(1, 'q1')])
    await worker.close()
    await db.collection('writers').deleteMany({})
    await storeOnce(commands, [says(2, 'q2')])
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [says(1).id] }, 'nobody can tell')
    await worker.store([aThread().says(3, 'q1')])
    await worker.close()
    assert.deepEqual(await found(), { quotes: 2, words: 4, open: [] })
  })

  it('stays open where the first process failed and went on, and only that thread does', async () => {
    const [failed, later] = [aThread(), aThread()]
    const slow = held(commands, QUOTES)
    const worker = createBatchStore(slow.commands)
    const storing = worker.store([failed.says(1, 'q1', 'q2')])
    await slow.reached
    slow.fail()
    await assert.rejects(storing, HeldWriteFailed)
    await worker.store([later.says(2, 'q1')])
    await worker.close()
    assert.deepEqual((await failed.found()).open, [failed.says(1).id])
    assert.deepEqual(await later.found(), { quotes: 1, words: 2, open: [] })
    await storeOnce(commands, [failed.says(3, 'q3')])
    assert.deepEqual(await failed.found(), { quotes: 1, words: 2, open: [failed.says(1).id] })
  })
})
