import assert from 'node:assert/strict'
import { afterEach, beforeEach, test, vi } from 'vitest'
import { checkOf, pingWhenAsked, readinessOf } from './readiness.ts'

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
  const check = pingWhenAsked(() => answer())
  assert.deepEqual(await check(), { ok: true })

  answer = () => new Promise(() => {})
  await vi.advanceTimersByTimeAsync(500)
  const late = check()
  await vi.advanceTimersByTimeAsync(1_500)
  assert.deepEqual(await late, { ok: false, reason: 'no answer within 1500 ms' })

  answer = () => Promise.reject(new Error('redis://secret@host'))
  assert.deepEqual(await check(), { ok: false, reason: 'not reached' })

  answer = () => Promise.resolve()
  await vi.advanceTimersByTimeAsync(500)
  assert.deepEqual(await check(), { ok: true })
})

test('those who ask within half a second share one ping', async () => {
  const asked = vi.fn(async () => {})
  const check = pingWhenAsked(asked)
  await Promise.all([check(), check()])
  await vi.advanceTimersByTimeAsync(499)
  await check()
  assert.equal(asked.mock.calls.length, 1)
})
