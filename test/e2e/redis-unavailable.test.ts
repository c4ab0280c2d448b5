import assert from 'node:assert/strict'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { beforeSuite, requiredUrl } from '@sluice/test-support'
import { beforeAll, describe, test } from 'vitest'
import { startSluice } from '../support/start-sluice.ts'
import { openTcpProxy, type ServerProxy } from '../support/tcp-proxy.ts'
import { BUSY_MS, until } from '../support/until.ts'
import { type Caller, createCaller, type Reply } from './support/caller.ts'
import { jobIn, jobPathIn, problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const ANSWER_MS = 2_000 + BUSY_MS

describe('while Redis is unavailable every caller gets a 503 with Retry-After within two seconds', () => {
  let proxy: ServerProxy
  let caller: Caller
  let path: string
  beforeSuite(async (t) => {
    proxy = await openTcpProxy(t, requiredUrl('REDIS_URL'))
    caller = createCaller(await startSluice(t, { redisUrl: proxy.url }))
    path = jobPathIn(await caller.post(someThread(), { prefer: 'respond-async' }))
    jobIn(await caller.get(path, { prefer: 'wait=20' }))
  })

  const calls: [it: string, call: () => Promise<Reply>][] = [
    ['POST /sources', () => caller.post(someThread())],
    [
      'POST /sources with respond-async',
      () => caller.post(someThread(), { prefer: 'respond-async' }),
    ],
    ['GET /jobs/{id}', () => caller.get(path)],
    ['GET /jobs/{id} with wait', () => caller.get(path, { prefer: 'wait=20' })],
  ]
  const outages: [how: string, makeUnavailable: () => Promise<void>][] = [
    ['while Redis hangs', async () => proxy.freeze()],
    [
      'while Redis is gone',
      async () => {
        proxy.thaw()
        await until(
          'Redis answers again',
          async () => (await caller.post(someThread())).status === 200,
        )
        await proxy.shut()
        await until(
          'the API notices that Redis is gone',
          async () => (await caller.get('/readyz')).status === 503,
        )
      },
    ],
  ]
  describe.for(outages)('%s', ([how, makeUnavailable]) => {
    let replies: Map<string, Promise<{ reply: Reply; ms: number }>>
    beforeAll(async () => {
      await makeUnavailable()
      const began = performance.now()
      const timed = async (call: () => Promise<Reply>) => ({
        reply: await call(),
        ms: performance.now() - began,
      })
      replies = new Map(calls.map(([it, call]) => [it, timed(call)]))
    })
    for (const [it] of calls) {
      test(`${it} gets a 503 ${how}, or a 504 if it was under way`, async () => {
        const { reply, ms } = (await replies.get(it)) ?? assert.fail()
        assert.ok(ms < ANSWER_MS, `${ms} ms`)
        if (reply.status === 504 && it.startsWith('POST')) {
          assert.equal(
            jobPathIn(reply),
            `/jobs/${problemIn(reply, 504, 'acceptance_unknown').jobId}`,
          )
          return
        }
        problemIn(reply, 503, 'queue_unavailable')
        assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
      })
    }
  })

  test('a request that needs no Redis gets its usual answer', async () => {
    problemIn(await caller.post(someThread(), { 'x-api-key': 'wrong' }), 403, 'api_key_invalid')
    problemIn(await caller.get('/nowhere'), 404, 'route_unknown')
    assert.equal((await caller.get('/limits')).status, 200)
    assert.equal((await caller.get('/livez')).status, 200)
  })

  test('the API serves again when Redis is back', async () => {
    await proxy.reopen()
    await until('Redis is back', async () => (await caller.get('/readyz')).status === 200)
    storedIn(await caller.post(someThread()))
    assert.equal(jobIn(await caller.get(path)).state, 'completed')
  })
})

test('an error during the script may come after its write, so it is a 504, and the log says which error it is', async (t) => {
  const sluice = await startSluice(t, { workers: 0 })
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await redis.set(`${queueKeys(sluice.settings.QUEUE ?? '').base}load`, 'no hash')
  problemIn(await createCaller(sluice).post(someThread()), 504, 'acceptance_unknown')
  const { reason } = await sluice.api.line(({ code }) => code === 'acceptance_unknown')
  assert.match(String(reason), /WRONGTYPE/)
})
