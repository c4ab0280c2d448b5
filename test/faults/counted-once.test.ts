import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { startHeartbeats } from '@sluice/boot/heartbeats'
import { createReadHistory } from '@sluice/operations'
import { connectFailFast } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { test } from 'vitest'
import { openPrivateServer } from '../support/private-server.ts'
import { until } from '../support/until.ts'

/** Longer than a command of the API waits for its reply, and shorter than its connection does. */
const HANG_MS = 1_850

test('what a process counted before Redis hung is counted once, though its heartbeat got no reply in time', async (t) => {
  const server = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
  t.onTestFinished(server.end)
  const redis = connectFailFast({ redisUrl: server.url, queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const keys = queueKeys(testQueueName())
  const readHistory = createReadHistory(redis, keys)
  const reading = { totals: { accepted: 0 } }
  const stop = startHeartbeats(redis, keys, { kind: 'api', version: '1.2.3' }, async () => reading)
  t.onTestFinished(stop)
  const accepted = async () =>
    (await readHistory('1 h')).reduce((sum, { point }) => sum + (point?.accepted ?? 0), 0)

  for (let hangs = 1; hangs <= 2; hangs++) {
    reading.totals.accepted += 5
    // The next heartbeat is sent while Redis hangs, and Redis runs it later.
    await server.signal('SIGSTOP')
    await delay(1_000 + HANG_MS)
    reading.totals.accepted += 1
    await server.signal('SIGCONT')
    const counted = await until('the next heartbeat', async () => {
      const now = await accepted().catch(() => 0)
      return now >= 6 * hangs && now
    })
    assert.equal(counted, 6 * hangs)
  }
})
