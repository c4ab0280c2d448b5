import assert from 'node:assert/strict'
import { connectRetrying } from '@sluice/queue'
import { type LogLine, requiredUrl, startProcess, testQueueName } from '@sluice/test-support'
import { afterAll, beforeAll, test } from 'vitest'
import { openPrivateServer, type PrivateServer } from './private-server.ts'

let redis: PrivateServer
beforeAll(async () => {
  redis = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
  const client = connectRetrying(redis.url, () => {})
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  client.disconnect()
})
afterAll(() => redis.end())

for (const app of ['api', 'worker']) {
  test(`the ${app} refuses to start on a Redis that evicts, and logs the command that fixes it`, {
    timeout: 20_000,
  }, async (t) => {
    const started = startProcess(t, `apps/${app}/src/main.ts`, {
      REDIS_URL: redis.url,
      MONGODB_URL: requiredUrl('MONGODB_URL'),
      QUEUE: testQueueName(),
      PORT: '0',
      ADMIN_PORT: '0',
    })
    assert.deepEqual(await started.ended, { code: 1, signal: null })
    const [message] = started.log.flatMap(errorMessage)
    assert.match(message ?? '', /maxmemory-policy allkeys-lru/)
    assert.match(message ?? '', /config set maxmemory-policy noeviction/)
  })
}

function errorMessage({ err }: LogLine): string[] {
  return typeof err === 'object' && err !== null && 'message' in err ? [String(err.message)] : []
}
