import assert from 'node:assert/strict'
import { test, vi } from 'vitest'
import { createBudget } from './shares.ts'

test('a budget is shared for a second after another tenant has taken some of it', (t) => {
  vi.useFakeTimers({ toFake: ['performance'] })
  t.onTestFinished(() => void vi.useRealTimers())
  const budget = createBudget({ maxBytes: 100, tenantShare: 1 })
  const isShared = () => ['acme', 'globex'].map(budget.isShared)
  assert.deepEqual(isShared(), [false, false])
  budget.take('acme', 1)
  assert.deepEqual(isShared(), [false, true])
  vi.advanceTimersByTime(900)
  budget.take('globex', 1)
  budget.take('globex', 1)
  assert.deepEqual(isShared(), [true, true])
  vi.advanceTimersByTime(100)
  assert.deepEqual(isShared(), [true, false])
  vi.advanceTimersByTime(900)
  assert.deepEqual(isShared(), [false, false])
})
