import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connectRetrying } from '@sluice/process/redis'
import { newJobId, queueKeys } from '@sluice/queue'
import { createJobAdder } from '@sluice/queue/test-support'
import { requiredUrl, testDatabase, testQueueName } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { printedOn } from '../commands.test-support.ts'
import { openAdminClient, SilentApiError } from './admin-client.ts'
import { statusCommand } from './queue-commands.ts'
import { readStatus } from './read-status.ts'

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
  const readDirectly = () =>
    readStatus({
      openDb: async () => ({ db, close: async () => {} }),
      withQueue: (work) => work(redis, keys),
    })
  const { port } = hung.address() as AddressInfo
  const deps = { folder: '/nowhere', env: { SLUICE_API_KEY: 'slc_none' } }
  const url = `http://127.0.0.1:${port}`
  const client = await openAdminClient(deps, { url })
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
  return { client, url, readDirectly, id }
}

test.concurrent('the status is read from Redis while the API hangs, soon, unless --url may name another one', async (t) => {
  const { client, url, readDirectly } = await open(t)
  const [notes, printed]: [string[], string[]] = [[], []]
  const run = (env: { REDIS_URL?: string }) =>
    statusCommand({
      ...{ env, readDirectly, openClient: async () => client },
      show: (line) => void notes.push(line),
      printLines: printedOn((line) => void printed.push(line)),
    }).parseAsync(['--url', url], { from: 'user' })
  const began = performance.now()
  await run({ REDIS_URL: 'some' })
  assert.ok(performance.now() - began < 6_000)
  assert.match(printed.join('\n'), /^No API has shown a sign of life/m)
  assert.match(printed.join('\n'), /^bulk +failed +1 /m)
  assert.equal(notes.length, 1)
  assert.match(notes[0] ?? '', /it does not answer\. This is read from Redis\.$/)
  await assert.rejects(run({}), /it does not answer\.$/)
}, 60_000)

test.concurrent('a hung API is asked for no operation, and whoever waits for one hears that it was accepted', async (t) => {
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

test.concurrent('an operation that an API neither accepts nor refuses is said to be unknown', async (t) => {
  let [status, body] = [503, '']
  const { client, id } = await open(
    t,
    ({ url }, response) => void response.writeHead(url === '/livez' ? 200 : status).end(body),
  )
  const open503 = client.open('retry', { ids: [id] })
  await assert.rejects(
    open503,
    /has the status 503, and is not from Sluice's API\..* Later, `sluice jobs operations` shows whether it was accepted/,
  )
  // The status is then read from Redis, which may say why, such as by an expired certificate.
  body = '{"code":"queue_unavailable","detail":"Redis is unavailable."}'
  await assert.rejects(client.status(), SilentApiError)
  ;[status, body] = [400, '']
  await assert.rejects(
    client.open('retry', { ids: [id] }),
    /has the status 400, and is not from Sluice's API\. Check the URL\.$/,
  )
}, 60_000)
