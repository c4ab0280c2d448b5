import assert from 'node:assert/strict'
import { once } from 'node:events'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { it, type TestContext, vi } from 'vitest'
import { NewerLayoutError, watchLayout } from './layout.ts'
import { connectRetrying } from './redis-connections.ts'

async function connect(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  return redis
}

const unexpected = (error: Error) => assert.fail(error)

it('refuses a process that cannot read what a newer release has written, and no other one', async (t) => {
  const redis = await connect(t)
  const keys = { base: `{${testQueueName()}}:sluice:` }
  const watch = (layout: { writes: number; reads: number }) => watchLayout(redis, keys.base, unexpected, layout)
  await watch({ writes: 1, reads: 1 })
  await watch({ writes: 1, reads: 2 })
  await watch({ writes: 2, reads: 2 })
  // The release before the change goes on to run, and a rollback to it starts.
  await watch({ writes: 1, reads: 2 })
  await assert.rejects(watch({ writes: 1, reads: 1 }), NewerLayoutError)
  assert.equal(await redis.get(`${keys.base}layout`), '2')
})

it('has a running process stop within five seconds, or when Redis is back', async (t) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  t.onTestFinished(() => void vi.useRealTimers())
  const [redis, newer] = [await connect(t), await connect(t)]
  for (const seen of [() => vi.advanceTimersByTimeAsync(5_000), () => redis.disconnect(true)]) {
    const keys = { base: `{${testQueueName()}}:sluice:` }
    const stopped = Promise.withResolvers<Error>()
    await watchLayout(redis, keys.base, stopped.resolve, { writes: 1, reads: 1 })
    await watchLayout(newer, keys.base, unexpected, { writes: 2, reads: 2 })
    await seen()
    assert.match((await stopped.promise).message, /layout 2 .* only up to 1/)
  }
})
