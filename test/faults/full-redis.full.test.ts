import assert from 'node:assert/strict'
import { startHeartbeats } from '@sluice/boot/heartbeats'
import { createSessions } from '@sluice/credentials/sessions'
import { createReadOverview } from '@sluice/operations'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl } from '@sluice/test-support'
import { afterAll, beforeAll, test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { startSluice } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

let redis: PrivateServer
beforeAll(async () => {
  redis = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
})
afterAll(() => redis.end())

/** Room for about 60 threads of 100 KB, in bytes. */
const ROOM = 8 * 1024 * 1024

test('a full Redis refuses new requests, drains what it has accepted, and accepts again', async (t) => {
  const sluice = await startSluice(t, {
    workers: 0,
    redisUrl: redis.url,
    settings: { RESULT_BYTES: '1048576', WAIT_SECONDS: '5' },
  })
  const client = connectRetrying({ redisUrl: redis.url, queue: '' }, () => {})
  t.onTestFinished(() => client.disconnect())
  const { drained } = openQueue(t, sluice.settings)
  const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
  await client.config('SET', 'maxmemory', used + ROOM)
  const isFull = async () =>
    Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]) > used + ROOM

  const posted: Posted[] = []
  await until('Redis to be full', async () => {
    const answer = await postThread(
      sluice,
      aThread({ text: 'word '.repeat(6_600) }),
      'respond-async',
    )
    posted.push(answer)
    return answer.status === 503
  })
  assert(posted.length > 20, `only ${posted.length} were accepted`)
  assert(posted.slice(0, -1).every(({ status }) => status === 202))
  // Growing clients may fill the rest: then nothing at all may grow.
  while (!(await isFull())) await client.append('filling', 'x'.repeat(10_000)).catch(() => {})

  const keys = queueKeys(sluice.settings.QUEUE ?? '')
  t.onTestFinished(
    startHeartbeats(client, keys, { kind: 'dashboard', version: '0.0.0' }, async () => ({})),
  )
  await until('a heartbeat', async () =>
    (await createReadOverview(client, keys)()).processes.some(({ kind }) => kind === 'dashboard'),
  )
  const sessions = createSessions(client, queueKeys(sluice.settings.QUEUE ?? ''))
  const link = await sessions.createLink({ role: 'operator', by: 'on call' })
  const visitor = await sessions.useLink(link)
  assert(
    visitor !== undefined && (await sessions.find(await sessions.open(visitor), true)),
    'no login',
  )

  await sluice.startWorker()
  await drained()
  await client.del('filling')
  const later = await postThread(sluice, aThread())
  assert.equal(later.status, 200)
  await drained()
  await assertStored(sluice.db, [...posted, later])
})

test('a full Redis refuses the take-over of a killed worker\u2019s jobs, which run when it has memory again', async (t) => {
  const sluice = await startSluice(t, { workers: 0, redisUrl: redis.url })
  const client = connectRetrying({ redisUrl: redis.url, queue: '' }, () => {})
  t.onTestFinished(async () => {
    await client.config('SET', 'maxmemory', 0)
    client.disconnect()
  })
  await client.config('SET', 'maxmemory', 0)
  const { queue, drained, expireLocks } = openQueue(t, sluice.settings)
  const mongodb = await openTcpProxy(t, sluice.settings.MONGODB_URL ?? '')
  const killed = await sluice.startWorker({ MONGODB_URL: mongodb.url })
  mongodb.freeze()
  const post = postThread(sluice, aThread())
  await until('a job to be locked', async () => (await queue.getActiveCount()) === 1)
  killed.signal('SIGKILL')
  await killed.ended
  await expireLocks()

  await client.config('SET', 'maxmemory', 1)
  const worker = await sluice.startWorker()
  const { err } = await worker.line(({ msg }) => msg === 'redis.error')
  assert.match(String(err), /OOM command not allowed/)
  assert.equal(await queue.getActiveCount(), 1)
  await client.config('SET', 'maxmemory', 0)
  const posted = await post
  await drained()
  assert.equal(posted.status, 200)
  await assertStored(sluice.db, [posted], { afterCrash: true })
})
