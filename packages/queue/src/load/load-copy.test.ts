import assert from 'node:assert/strict'
import { UNBOUNDED } from '@sluice/test-support'
import { test } from 'vitest'
import { createLoadCopy } from './load-copy.ts'

test('callers may wait for the given seconds by the rate that was measured while a hundred waited, 500 of them in any case', () => {
  const copy = createLoadCopy({ ...UNBOUNDED, waitingSeconds: 5 })
  let drained = 0
  let at = 0
  /** A minute in which this number of threads waits and drains. */
  function pass(interactive: number, perSecond: number): number {
    for (const end = at + 60_000; at < end; ) {
      at += 1_000
      drained += perSecond
      const totals = {
        threads: interactive,
        bytes: 0,
        interactive,
        drained,
        drainedInteractive: drained,
      }
      copy.noteTotals(totals, at)
    }
    return copy.mostInteractive()
  }
  assert.equal(pass(99, 40), 5 * 500)
  assert.equal(pass(100, 1_200), 5 * 1_200)
  assert.equal(pass(100, 0), 5 * 1_200)
  assert.equal(pass(99, 300), 5 * 1_200)
  assert.equal(pass(100, 20), 500)
})
