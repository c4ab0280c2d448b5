import assert from 'node:assert/strict'
import { freePort } from '@sluice/servers'
import { beforeSuite, requiredUrl } from '@sluice/test-support'
import { beforeAll, describe, test } from 'vitest'
import { createTcpProxy } from '../faults/tcp-proxy.ts'
import { until } from '../faults/until.ts'
import { startSluice } from '../start-sluice.ts'
import { type Caller, createCaller, type Reply } from './support/caller.ts'
import { jobIn, jobPathIn, problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const ANSWER_MS = 2_000

describe('while Redis is away every caller is told soon, and to come again', () => {
  const redis = new URL(requiredUrl('REDIS_URL'))
  const redisPort = Number(redis.port)
  let way: ReturnType<typeof createTcpProxy>
  let caller: Caller
  let path: string
  beforeSuite(async (t) => {
    redis.port = String(await freePort())
    way = createTcpProxy(Number(redis.port))
    await way.open(redisPort)
    t.onTestFinished(way.shut)
    caller = createCaller(await startSluice(t, { redisUrl: redis.href }))
    path = jobPathIn(await caller.post(someThread(), { prefer: 'respond-async' }))
    jobIn(await caller.get(path, { prefer: 'wait=20' }))
  })

  const calls: [it: string, call: () => Promise<Reply>][] = [
    ['POST /sources', () => caller.post(someThread())],
    ['POST /sources with respond-async', () => caller.post(someThread(), { prefer: 'respond-async' })],
    ['GET /jobs/{id}', () => caller.get(path)],
    ['GET /jobs/{id} with wait', () => caller.get(path, { prefer: 'wait=20' })],
  ]
  const ways: [how: string, takeAway: () => Promise<void>][] = [
    ['where Redis hangs', async () => way.freeze()],
    [
      'where Redis is gone',
      async () => {
        way.thaw()
        await until('Redis answers again', 5_000, async () => (await caller.post(someThread())).status === 200)
        await way.shut()
        await until('its going is noticed', 5_000, async () => (await caller.get('/readyz')).status === 503)
      },
    ],
  ]
  describe.for(ways)('%s', ([how, takeAway]) => {
    let began: number
    let replies: Map<string, Promise<Reply>>
    beforeAll(async () => {
      await takeAway()
      began = performance.now()
      replies = new Map(calls.map(([it, call]) => [it, call()]))
    })
    for (const [it] of calls) {
      test(`${it}: 503 ${how}, or 504 for what was under way`, async () => {
        const reply = await replies.get(it)
        assert.ok(reply !== undefined)
        assert.ok(performance.now() - began < ANSWER_MS)
        if (reply.status === 504 && it.startsWith('POST')) {
          assert.equal(jobPathIn(reply), `/jobs/${problemIn(reply, 504, 'acceptance_unknown').jobId}`)
          return
        }
        problemIn(reply, 503, 'queue_unavailable')
        assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
      })
    }
  })

  test('what needs no Redis is answered as ever', async () => {
    problemIn(await caller.post(someThread(), { 'x-api-key': 'wrong' }), 403, 'api_key_invalid')
    problemIn(await caller.get('/nowhere'), 404, 'route_unknown')
    assert.equal((await caller.get('/limits')).status, 200)
    assert.equal((await caller.get('/livez')).status, 200)
  })

  test('once Redis is back everything goes on by itself', async () => {
    await way.open(redisPort)
    await until('Redis is back', 5_000, async () => (await caller.get('/readyz')).status === 200)
    storedIn(await caller.post(someThread()))
    assert.equal(jobIn(await caller.get(path)).state, 'completed')
  })
})
