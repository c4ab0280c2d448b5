import assert from 'node:assert/strict'
import { mkdir, rm } from 'node:fs/promises'
import { startHeartbeats } from '@sluice/boot/heartbeats'
import { openAdmin } from '@sluice/operations'
import { connectRetrying, type Redis } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import {
  type LogLine,
  requiredUrl,
  startProcess,
  testDatabase,
  testQueueName,
} from '@sluice/test-support'
import { afterAll, beforeAll, beforeEach, type TestContext, test, vi } from 'vitest'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { until } from '../support/until.ts'

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

const FIT = {
  'maxmemory-policy': 'noeviction',
  appendonly: 'yes',
  maxmemory: '0',
  maxclients: '1000',
}

/** A queue, and what the verdict says of it. */
async function open(t: TestContext) {
  const QUEUE = testQueueName()
  const keys = queueKeys(QUEUE)
  const view = openAdmin(client, keys, await testDatabase(t)).viewFor({
    role: 'operator',
    by: 'on call',
  })
  const verdict = async () => ((await view.readStatus()).verdict ?? []).map(({ text }) => text)
  return { QUEUE, keys, verdict }
}

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
    assertRefused(
      started.log,
      /maxmemory-policy allkeys-lru/,
      /config set maxmemory-policy noeviction/,
    )
  })
}

test('a Redis without an append-only file and with too little memory is reported, or refused', async (t) => {
  const { verdict } = await open(t)
  assert.doesNotMatch((await verdict()).join('\n'), /appendonly/)
  await client.config('SET', 'appendonly', 'no')
  assert.match((await verdict()).join('\n'), /`redis-cli config set appendonly yes`/)
  await client.config('SET', 'maxclients', 1)
  assert.match((await verdict()).join('\n'), /^Redis has \d+ of at most 1 connections/m)
  await client.config('SET', 'maxclients', FIT.maxclients)
  assert.doesNotMatch((await verdict()).join('\n'), /connections/)
  await client.config('SET', 'maxmemory', 100_000_000)
  const warned = start(t, 'api')
  await warned.line(({ msg }) => msg === 'api.listening')
  const faults = warned.log
    .filter(({ msg }) => msg === 'redis.unfit')
    .map(({ fault }) => String(fault))
  assert.equal(faults.length, 2)
  assert.match(faults[0] ?? '', /redis-cli config set appendonly yes/)
  assert.match(faults[1] ?? '', /redis-cli config set maxmemory 2147483648/)

  const refused = start(t, 'worker', { REDIS_CHECKS: 'refuse' })
  assert.deepEqual(await refused.ended, { code: 1, signal: null })
  assertRefused(refused.log, /config set appendonly yes/, /config set maxmemory/)
})

test('a process ends if Redis evicts when it connects again, and the verdict says why', async (t) => {
  const { QUEUE, verdict } = await open(t)
  const running = start(t, 'worker', { QUEUE })
  await running.line(({ msg }) => msg === 'worker.listening')
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  assert.equal((await running.ended).code, 1)
  assertRefused(running.log, /maxmemory-policy allkeys-lru/)
  const [first = '', ...others] = await verdict()
  assert.match(
    first,
    /maxmemory-policy allkeys-lru.*`redis-cli config set maxmemory-policy noeviction`/,
  )
  assert.match(others.join('\n'), /^No API has shown a sign of life/)
})

test('while Redis refuses writes, the verdict says why and what mends it, and calls no process dead', async (t) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  t.onTestFinished(() => void vi.useRealTimers())
  const { keys, verdict } = await open(t)
  for (const kind of ['api', 'worker'] as const)
    t.onTestFinished(startHeartbeats(client, keys, { kind, version: '1.0.0' }, async () => ({})))
  await until('all is well', async () => (await verdict()).length === 0)
  // As old as heartbeats are after a minute of refused writes.
  const processes = await client.zrange(`${keys.base}processes`, '0', '-1')
  for (const id of processes) await client.zadd(`${keys.base}processes`, Date.now() - 60_000, id)
  assert.match((await verdict()).join('\n'), /^No API has .*\nNo worker has .*$/)

  const [, dir] = Object(await client.config('GET', 'dir'))
  await client.config('SET', 'save', '3600 1000000')
  // Makes snapshots fail, as on a full disk: Redis can't replace a folder that has files.
  await mkdir(`${dir}/dump.rdb/full`, { recursive: true })
  await client.bgsave('SCHEDULE')
  const refused = await until('refused writes', async () =>
    (await verdict()).find((text) => text.includes('MISCONF')),
  )
  assert.match(
    refused,
    /^Redis refuses writes: MISCONF .* \(rdb_last_bgsave_status:err\)\. Free space .*`redis-cli bgsave schedule`$/,
  )
  assert.deepEqual(await verdict(), [refused])
  await rm(`${dir}/dump.rdb`, { recursive: true })
  await client.bgsave('SCHEDULE')
  await until('the end', async () =>
    /^No API has .*\nNo worker has .*$/.test((await verdict()).join('\n')),
  )

  await client.config('SET', 'min-replicas-to-write', '1')
  assert.match((await verdict()).join('\n'), /^Redis refuses writes: NOREPLICAS [^\n]*$/)
  await client.config('SET', 'min-replicas-to-write', '0')
})

function assertRefused(log: readonly LogLine[], ...parts: RegExp[]): void {
  const messages = log.flatMap(errorMessage).join('\n')
  for (const part of parts) assert.match(messages, part)
}

function errorMessage({ err }: LogLine): string[] {
  return typeof err === 'object' && err !== null && 'message' in err ? [String(err.message)] : []
}
