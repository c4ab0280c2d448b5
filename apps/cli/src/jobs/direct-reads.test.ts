import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connectRetrying } from '@sluice/process/redis'
import { newJobId, queueKeys } from '@sluice/queue'
import { createJobAdder } from '@sluice/queue/test-support'
import { UserError } from '@sluice/terminal'
import { requiredUrl, testDatabase, testQueueName } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { openAdminClient } from './admin-client.ts'
import { createReadDirectly } from './direct-reads.ts'

/**
 * A client of an API that accepts connections and, unless it has a listener, answers nothing. Its
 * queue has a failed job.
 */
async function open(t: TestContext, listener: RequestListener = () => {}) {
  const hung = createServer(listener).listen(0, '127.0.0.1')
  t.onTestFinished(() => {
    hung.closeAllConnections()
    hung.close()
  })
  await once(hung, 'listening')
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const keys = queueKeys(testQueueName())
  const db = await testDatabase(t)
  const readDirectly = createReadDirectly({
    openDb: async () => ({ db, close: async () => {} }),
    withQueue: (work) => work(redis, keys),
  })
  const notes: string[] = []
  const { port } = hung.address() as AddressInfo
  const deps = { folder: '/nowhere', env: { SLUICE_API_KEY: 'slc_none' } }
  const fallback = { show: (line: string) => void notes.push(line), readDirectly }
  const client = await openAdminClient(deps, { url: `http://127.0.0.1:${port}` }, fallback)
  const id = newJobId('C1')
  const thread = {
    source: { service: 'slack' as const, externalId: 'C1', title: 'A title' },
    quotes: [],
  }
  const job = { tenant: 'acme', requestId: 'r', retained: false, threads: [thread] }
  await createJobAdder(redis, keys)({ id, lane: 'bulk', job })
  await redis.lrem(`${keys.jobs.bulk}wait`, 1, id)
  await redis.zadd(keys.failed.bulk, Date.now(), id)
  await redis.hset(keys.jobs.bulk + id, { failedReason: 'too large' })
  return { client, notes, id }
}

test('everything is read from Redis while the API hangs, soon, and each client says so once', async (t) => {
  const { client, notes, id } = await open(t)
  const began = performance.now()
  const status = await client.status()
  assert.ok(performance.now() - began < 6_000)
  assert.ok(status.verdict?.some(({ code }) => code === 'process_missing'))
  const [list, found] = await Promise.all([
    client.list({ tenant: 'acme' }, { limit: 1 }),
    client.find({ q: 'C1' }),
  ])
  assert.deepEqual(
    list.jobs.map((job) => [job.id, job.reason]),
    [[id, 'too large']],
  )
  assert.equal(found.hits[0]?.id, id)
  assert.equal((await client.show(id)).reason, 'too large')
  await assert.rejects(client.show(newJobId()), UserError)
  assert.equal(notes.length, 1)
  assert.match(notes[0] ?? '', /it does not answer\. This is read from Redis\.$/)
}, 60_000)

test('a hung API is asked for no operation, and whoever waits for one hears that it was accepted', async (t) => {
  const asked = new Set<string | undefined>()
  const { client, id } = await open(t, ({ method, url }) => asked.add(`${method} ${url}`))
  const began = performance.now()
  const operations = [
    client.open('discard', { ids: [id] }),
    client.operateLane('pause', 'bulk', {}),
  ]
  for (const operation of operations)
    await assert.rejects(
      operation,
      /^UserError: Nothing was changed\. The API at .* it does not answer\.$/,
    )
  await assert.rejects(
    client.operation('o'),
    /it does not answer\. Operation o was accepted, and goes on when an API runs/,
  )
  assert.ok(performance.now() - began < 12_000)
  assert.deepEqual([...asked], ['GET /livez'])
}, 60_000)

test('an operation that an API neither accepts nor refuses is said to be unknown', async (t) => {
  let status = 503
  const { client, id } = await open(
    t,
    ({ url }, response) => void response.writeHead(url === '/livez' ? 200 : status).end(),
  )
  const open503 = client.open('retry', { ids: [id] })
  await assert.rejects(
    open503,
    /answered 503\. Later, `sluice jobs operations` shows whether it was accepted/,
  )
  status = 400
  await assert.rejects(client.open('retry', { ids: [id] }), /answered 400\.$/)
}, 60_000)
