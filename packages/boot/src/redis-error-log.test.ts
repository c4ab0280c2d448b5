import assert from 'node:assert/strict'
import { it, vi } from 'vitest'
import { createRedisErrorLog, createScriptErrorLog } from './redis-error-log.ts'

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

it('logs the first failure of each script, and then how many follow', (t) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  t.onTestFinished(() => void vi.useRealTimers())
  const logged: unknown[][] = []
  const onError = createScriptErrorLog({ error: (...line: unknown[]) => void logged.push(line) })
  const err = new Error('WRONGTYPE')
  for (const script of ['complete', 'complete', 'fetch', 'complete']) onError(script, err)
  const lineOf = (script: string, errors: number) => [
    { script, err, errors },
    'redis.script_failed',
  ]
  assert.deepEqual(logged.splice(0), [lineOf('complete', 1), lineOf('fetch', 1)])
  vi.advanceTimersByTime(10_000)
  assert.deepEqual(logged.splice(0), [lineOf('complete', 2)])
})
