import assert from 'node:assert/strict'
import type { Status } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { beforeSuite } from '@sluice/test-support'
import { describe, type TestContext, test } from 'vitest'
import { openQueue } from '../support/open-queue.ts'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { createCaller, type Reply } from './support/caller.ts'
import { openWire, postHead } from './support/open-wire.ts'
import { acceptedIn, jobIn, jobPathIn, problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const ASYNC = { prefer: 'respond-async' }

function retryAfterOf({ headers }: Reply): number {
  const text = headers.get('retry-after') ?? ''
  assert.match(text, /^[1-9]\d*$/)
  return Number(text)
}

describe('a queue that is full', () => {
  const THREADS = 100
  let sluice: TestSluice
  const callers = new Map<string, ReturnType<typeof createCaller>>()
  const callerOf = (tenant: string) => callers.get(tenant) ?? assert.fail(tenant)
  beforeSuite(async (t) => {
    sluice = await startSluice(t, {
      workers: 0,
      settings: { MAX_QUEUE_THREADS: String(THREADS), WAIT_SECONDS: '2' },
    })
    for (const tenant of ['one', 'two', 'three']) {
      const { key } = await createKey(sluice.db, { tenant, name: tenant })
      callers.set(tenant, createCaller({ url: sluice.url, key }))
    }
  })
  const paths: string[] = []

  test('accepts exactly a share of each tenant and its bound of all, from 64 parallel callers', async () => {
    for (const [tenant, code, accepted] of [
      ['one', 'tenant_share', 50],
      ['two', 'tenant_share', 50],
      ['three', 'queue_full', 0],
    ] as const) {
      const replies = await Promise.all(
        Array.from({ length: 64 }, () => callerOf(tenant).post(someThread(), ASYNC)),
      )
      const taken = replies.filter(({ status }) => status === 202)
      assert.equal(taken.length, accepted, tenant)
      paths.push(...taken.map(jobPathIn))
      for (const reply of replies.filter(({ status }) => status !== 202)) {
        // While the queue is full, it is named before the share.
        const expected = tenant === 'two' ? 'queue_full' : code
        problemIn(reply, 503, expected)
        assert(retryAfterOf(reply) <= 60)
      }
    }
  })

  test('refuses a request before its body is read', async () => {
    const { key } = await createKey(sluice.db, { tenant: 'one', name: 'wire' })
    await until('an early refusal', async () => {
      await callerOf('one').post(someThread(), ASYNC)
      const wire = await openWire(sluice.url)
      await wire.write(postHead({ 'x-api-key': key, 'content-length': 1_000_000 }))
      const answer = await wire.until(/"requestId":"[^"]+"/)
      wire.socket.destroy()
      return /^HTTP\/1.1 503 [\s\S]*"code":"(queue_full|tenant_share)"/.test(answer)
    })
  })

  test('says a minute once it is known that nothing drains', async () => {
    await until(
      'a Retry-After of about a minute',
      async () => retryAfterOf(await callerOf('one').post(someThread(), ASYNC)) >= 50,
    )
  })

  test('is named by the verdict, with the reason and the tenants of the refusals', async () => {
    const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
    await until('a finding', async () => {
      await callerOf('one').post(someThread(), ASYNC)
      const { text } = await createCaller({ url: sluice.url, key }).get('/admin/overview')
      const status: Status = JSON.parse(text)
      const found = status.verdict?.find(({ code }) => code === 'requests_refused')?.text
      return /^\d+ % \(\d+ of \d+\) of the requests of .* were refused: .*(queue_full|tenant_share) \(one\)/.test(
        found ?? '',
      )
    })
  })

  test('answers status calls all the same', async () => {
    const [path = ''] = paths
    assert.equal(jobIn(await callerOf('one').get(path)).state, 'waiting')
  })

  test('keeps an import waiting, and refuses its items when it made no progress for as long as a caller may wait', async () => {
    // A replica that knows nothing of the load yet lets the import begin.
    const { url } = await sluice.startApi()
    const { key } = await createKey(sluice.db, { tenant: 'three', name: 'import' })
    const began = performance.now()
    const reply = await createCaller({ url, key }).postImport(someThread())
    assert.equal(reply.status, 200)
    const [item = ''] = reply.text.split('\n')
    const { status, problem } = JSON.parse(item)
    assert.deepEqual([status, problem.code], [503, 'queue_full'])
    assert(performance.now() - began >= 2_000)
  })

  test('accepts again once workers store what it holds, and all of that is stored, and nothing else', async () => {
    await sluice.startWorker()
    for (const path of paths) {
      const caller = callerOf(paths.indexOf(path) < 50 ? 'one' : 'two')
      await until(
        'the job is completed',
        async () => jobIn(await caller.get(path, { prefer: 'wait=2' })).state === 'completed',
      )
    }
    assert.equal(await sluice.db.collection('sources').countDocuments(), paths.length)
    await until(
      'a request is accepted',
      async () => (await callerOf('three').post(someThread())).status === 200,
    )
  })
})

test('an import reads on as soon as there is room', async (t: TestContext) => {
  const sluice = await startSluice(t, {
    workers: 0,
    settings: { MAX_QUEUE_THREADS: '200', WAIT_SECONDS: '60' },
  })
  const lines = Array.from({ length: 1_000 }, () => JSON.stringify(someThread())).join('\n')
  const importing = createCaller(sluice).postImport(lines)
  const { bulk } = openQueue(t, sluice.settings)
  await until('the tenant has its share', async () => (await bulk.getWaitingCount()) === 2)
  await sluice.startWorker()
  const summary = JSON.parse((await importing).text.trim().split('\n').at(-1) ?? '')
  assert.deepEqual(summary, {
    summary: { received: 1_000, created: 1_000, updated: 0, unchanged: 0, failed: 0 },
  })
})

describe('the quota of a key', () => {
  let sluice: SharedSluice
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
  })
  let keys = 0
  /**
   * A key of its own limits: `key-limits.test.ts` shows that without them a key has those of the
   * settings.
   */
  async function newKey(limits = { quotesPerSecond: 1, burstQuotes: 10 }): Promise<string> {
    const { tenant, db } = sluice
    return (await createKey(db, { tenant, name: `${tenant}-${keys++}`, limits })).key
  }
  const callerWith = (key: string) => createCaller({ url: sluice.url, key })

  test('lets a burst pass, then refuses with the headers and the type of the draft, before the body is read', async () => {
    const key = await newKey()
    const caller = callerWith(key)
    storedIn(
      await caller.post(someThread({ quotes: Array.from({ length: 40 }, () => ({ text: 'a' })) })),
    )
    const reply = await caller.post(someThread())
    assert.equal(reply.status, 429)
    const problem = JSON.parse(reply.text)
    assert.equal(problem.code, 'rate_limited')
    assert.equal(problem.type, 'https://iana.org/assignments/http-problem-types#quota-exceeded')
    assert.deepEqual(problem['violated-policies'], ['quotes'])
    const seconds = retryAfterOf(reply)
    assert(seconds > 20 && seconds <= 31, `${seconds}`)
    assert.equal(reply.headers.get('ratelimit-policy'), '"quotes";q=10;w=10;sluice-unit="quotes"')
    assert.equal(reply.headers.get('ratelimit'), `"quotes";r=0;t=${seconds}`)
    const wire = await openWire(sluice.url)
    await wire.write(postHead({ 'x-api-key': key, 'content-length': 1_000_000 }))
    assert.match(await wire.until(/"requestId":"[^"]+"/), /^HTTP\/1.1 429 /)
    wire.socket.destroy()
    assert.equal((await caller.get('/limits')).status, 200)
  })

  test('shows in the headers of every accepted POST what is left, and when it is refilled', async () => {
    const caller = callerWith(await newKey({ quotesPerSecond: 1, burstQuotes: 600 }))
    const quotes = Array.from({ length: 100 }, () => ({ text: 'a' }))
    const item = someThread({ quotes })
    const posts = [
      () => caller.post(someThread({ quotes })),
      () => caller.post(someThread({ quotes }), ASYNC),
      () => caller.postImport(item),
      () => caller.postImport(item, ASYNC),
    ]
    for (const [at, post] of posts.entries()) {
      const { headers } = await post()
      assert.equal(headers.get('ratelimit-policy'), '"quotes";q=600;w=600;sluice-unit="quotes"')
      const [, left, refilled] =
        /^"quotes";r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '')?.map(Number) ?? []
      const charged = 100 * (at + 1)
      // The bucket is refilled meanwhile, by a quote a second.
      assert.ok(left !== undefined && left >= 600 - charged && left < 650 - charged, `${left}`)
      assert.ok(
        refilled !== undefined && refilled > charged - 50 && refilled <= charged,
        `${refilled}`,
      )
    }
    assert.equal((await caller.post({})).headers.get('ratelimit'), null)
    assert.equal((await caller.get('/jobs/1')).headers.get('ratelimit'), null)
  })

  test('is charged for refused bodies and lines, a quote for each started kilobyte', async () => {
    const send = (path: string, type: string, body: string) => async (key: string) => {
      const caller = callerWith(key)
      await caller.send(path, { method: 'POST', headers: { 'content-type': type }, body })
      assert.equal((await caller.post(someThread())).status, 429)
    }
    const refused = [
      send('/sources', 'application/json', '['.repeat(200_000)),
      send('/sources', 'application/json', JSON.stringify({ text: 'x'.repeat(200_000) })),
      send('/sources:batch', 'application/x-ndjson', `${'['.repeat(200_000)}\n`),
    ]
    for (const sendRefused of refused) await sendRefused(await newKey())
  })

  test('is that of one key, and refills', async () => {
    const other = callerWith(await newKey())
    acceptedIn(
      await other.post(
        someThread({ quotes: Array.from({ length: 11 }, () => ({ text: 'a' })) }),
        ASYNC,
      ),
    )
    await until(
      'the bucket is refilled',
      async () => (await other.post(someThread(), ASYNC)).status === 202,
    )
  })
})
