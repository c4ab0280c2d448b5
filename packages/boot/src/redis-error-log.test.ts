import assert from 'node:assert/strict'
import { it, vi } from 'vitest'
import { createRedisErrorLog } from './redis-error-log.ts'

it('logs the first error, how many follow, and the end once Redis is ready', (t) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  t.onTestFinished(() => void vi.useRealTimers())
  const logged: unknown[][] = []
  let isReady = false
  const note = (...line: unknown[]) => void logged.push(line)
  const onError = createRedisErrorLog({ info: note, warn: note }, () => isReady)
  function after10Seconds(...errors: string[]) {
    for (const text of errors) onError(new Error(text))
    vi.advanceTimersByTime(10_000)
    return logged.splice(0)
  }

  onError(new Error('reset'))
  assert.deepEqual(logged.splice(0), [[{ err: 'reset', errors: 1 }, 'redis.error']])
  assert.deepEqual(after10Seconds('reset', 'refused', 'refused'), [
    [{ err: 'refused', errors: 3 }, 'redis.error'],
  ])
  assert.deepEqual(after10Seconds(), [])
  isReady = true
  assert.deepEqual(after10Seconds(), [['redis.recovered']])
  assert.deepEqual(after10Seconds(), [])
  assert.deepEqual(after10Seconds('again'), [
    [{ err: 'again', errors: 1 }, 'redis.error'],
    ['redis.recovered'],
  ])
})
