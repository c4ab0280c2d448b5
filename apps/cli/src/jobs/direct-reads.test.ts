import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connectRetrying } from '@sluice/process/redis'
import { newJobId, queueKeys } from '@sluice/queue'
import { createJobAdder } from '@sluice/queue/test-support'
import { UserError } from '@sluice/terminal'
import { requiredUrl, testDatabase, testQueueName } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { openAdminClient } from './admin-client.ts'
import { createReadDirectly } from './direct-reads.ts'

/** A client of an API that accepts connections and answers nothing, and a queue with a failed job. */
async function open(t: TestContext) {
  const hung = createServer(() => {}).listen(0, '127.0.0.1')
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
  const thread = { source: { service: 'slack' as const, externalId: 'C1', title: 'A title' }, quotes: [] }
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
  const [list, found] = await Promise.all([client.list({ tenant: 'acme' }, { limit: 1 }), client.find({ q: 'C1' })])
  assert.deepEqual(
    list.jobs.map((job) => [job.id, job.reason]),
    [[id, 'too large']],
  )
  assert.equal(found.hits[0]?.id, id)
  assert.equal((await client.show(id)).reason, 'too large')
  await assert.rejects(client.show(newJobId()), UserError)
  assert.equal(notes.length, 1)
  assert.match(notes[0] ?? '', /does not answer: this is read from Redis\.$/)
}, 60_000)
