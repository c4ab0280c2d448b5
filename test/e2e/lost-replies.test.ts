import assert from 'node:assert/strict'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl } from '@sluice/test-support'
import { test } from 'vitest'
import { startSluice } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { BUSY_MS, until } from '../support/until.ts'
import { createCaller } from './support/caller.ts'
import { storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'
import { untilMetric } from './support/until-metric.ts'

const CALLERS = 20
/**
 * A reply is overdue after a second, lookups are half a second apart, and reconnecting takes a
 * moment.
 */
const SOON_MS = 3_000 + BUSY_MS

test('a caller whose reply is lost still gets its answer within three seconds', async (t) => {
  const redisUrl = requiredUrl('REDIS_URL')
  const proxy = await openTcpProxy(t, redisUrl)
  const redis = connectRetrying({ redisUrl, queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())

  // Only the API uses the connection that is cut, so the workers reply meanwhile.
  const sluice = await startSluice(t, { workers: 0, redisUrl: proxy.url })
  const caller = createCaller(sluice)
  const { replica } = await sluice.api.line(({ msg }) => msg === 'api.listening')
  const replies = `${queueKeys(sluice.settings.QUEUE ?? '').base}replies:${replica}`
  const waiting = Array.from({ length: CALLERS }, () => caller.post(someThread()))
  await untilMetric(sluice.api, 'sluice_threads_accepted_total', CALLERS)

  await proxy.shut()
  await sluice.startWorker({ REDIS_URL: redisUrl })
  await until('all replies are sent', async () => {
    const entries = await redis.xrange(replies, '-', '+')
    return entries.flatMap(([, fields]) => fields).length === 2 * CALLERS // an id and a result each
  })
  assert.equal(await redis.del(replies), 1)
  const began = performance.now()
  await proxy.reopen()

  for (const reply of await Promise.all(waiting))
    assert.equal(storedIn(reply).source.outcome, 'created')
  const ms = performance.now() - began
  assert.ok(ms < SOON_MS, `${ms} ms`)
})
