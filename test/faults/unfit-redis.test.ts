import assert from 'node:assert/strict'
import { connectRetrying, type Redis } from '@sluice/process/redis'
import { type LogLine, requiredUrl, startProcess, testQueueName } from '@sluice/test-support'
import { afterAll, beforeAll, beforeEach, type TestContext, test } from 'vitest'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'

let redis: PrivateServer
let client: Redis
beforeAll(async () => {
  redis = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
  client = connectRetrying({ redisUrl: redis.url, queue: '' }, () => {})
})
beforeEach(async () => {
  for (const [name, value] of Object.entries(FIT)) await client.config('SET', name, value)
})
afterAll(() => {
  client.disconnect()
  return redis.end()
})

const FIT = { 'maxmemory-policy': 'noeviction', appendonly: 'yes', maxmemory: '0' }

function start(t: TestContext, app: string, settings: Record<string, string> = {}) {
  return startProcess(t, `apps/${app}/src/main.ts`, {
    REDIS_URL: redis.url,
    MONGODB_URL: requiredUrl('MONGODB_URL'),
    QUEUE: testQueueName(),
    PORT: '0',
    ADMIN_PORT: '0',
    ...settings,
  })
}

for (const app of ['api', 'worker']) {
  test(`the ${app} refuses to start on a Redis that evicts, and logs the command that fixes it`, async (t) => {
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
    const started = start(t, app)
    assert.deepEqual(await started.ended, { code: 1, signal: null })
    assertRefused(started.log, /maxmemory-policy allkeys-lru/, /config set maxmemory-policy noeviction/)
  })
}

test('a Redis without an append-only file and with too little memory is reported, or refused', async (t) => {
  await client.config('SET', 'appendonly', 'no')
  await client.config('SET', 'maxmemory', 100_000_000)
  const warned = start(t, 'api')
  await warned.line(({ msg }) => msg === 'api.listening')
  const faults = warned.log.filter(({ msg }) => msg === 'redis.unfit').map(({ fault }) => String(fault))
  assert.equal(faults.length, 2)
  assert.match(faults[0] ?? '', /redis-cli config set appendonly yes/)
  assert.match(faults[1] ?? '', /redis-cli config set maxmemory 2147483648/)

  const refused = start(t, 'worker', { REDIS_CHECKS: 'refuse' })
  assert.deepEqual(await refused.ended, { code: 1, signal: null })
  assertRefused(refused.log, /config set appendonly yes/, /config set maxmemory/)
})

test('a process ends if Redis evicts when it connects again', async (t) => {
  const running = start(t, 'worker')
  await running.line(({ msg }) => msg === 'worker.listening')
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  assert.equal((await running.ended).code, 1)
  assertRefused(running.log, /maxmemory-policy allkeys-lru/)
})

function assertRefused(log: readonly LogLine[], ...parts: RegExp[]): void {
  const messages = log.flatMap(errorMessage).join('\n')
  for (const part of parts) assert.match(messages, part)
}

function errorMessage({ err }: LogLine): string[] {
  return typeof err === 'object' && err !== null && 'message' in err ? [String(err.message)] : []
}
