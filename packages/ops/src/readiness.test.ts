import assert from 'node:assert/strict'
import { afterEach, beforeEach, test, vi } from 'vitest'
import { checkOf, readinessOf, repeatPing } from './readiness.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a process is ready if every check is', () => {
  const [good, bad] = [checkOf(true, 'unused'), checkOf(false, 'stopping')]
  assert.deepEqual(readinessOf({ good }), { ready: true, checks: { good: { ok: true } } })
  assert.deepEqual(readinessOf({ good, bad }), {
    ready: false,
    checks: { good: { ok: true }, bad: { ok: false, reason: 'stopping' } },
  })
})

test('a server that hangs, fails and answers again is noticed, and the reason names no server', async () => {
  let answer = (): Promise<unknown> => Promise.resolve()
  const ping = repeatPing(() => answer())
  assert.deepEqual(ping.check(), { ok: false, reason: 'not checked yet' })
  await vi.advanceTimersByTimeAsync(0)
  assert.deepEqual(ping.check(), { ok: true })

  answer = () => new Promise(() => {})
  await vi.advanceTimersByTimeAsync(2_500)
  assert.deepEqual(ping.check(), { ok: false, reason: 'no answer within 1500 ms' })

  answer = () => Promise.reject(new Error('redis://secret@host'))
  await vi.advanceTimersByTimeAsync(1_000)
  assert.deepEqual(ping.check(), { ok: false, reason: 'not reached' })

  answer = () => Promise.resolve()
  await vi.advanceTimersByTimeAsync(1_000)
  assert.deepEqual(ping.check(), { ok: true })
  ping.close()
})

test('a closed ping asks no more', async () => {
  const asked = vi.fn(async () => {})
  const ping = repeatPing(asked)
  ping.close()
  await vi.advanceTimersByTimeAsync(10_000)
  assert.equal(asked.mock.calls.length, 1)
})
