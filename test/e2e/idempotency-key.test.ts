import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { beforeSuite, requiredUrl } from '@sluice/test-support'
import { beforeAll, describe, test } from 'vitest'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { type Caller, createCaller, type Reply } from './support/caller.ts'
import { acceptedIn, jobPathIn, problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'
import { readMetric, untilMetric } from './support/until-metric.ts'

let keysMade = 0
/** An Idempotency-Key that no other request has, as a header. */
function newKey(): { 'idempotency-key': string } {
  keysMade += 1
  return { 'idempotency-key': `"key-${keysMade}"` }
}

function assertSame(replies: (Reply | undefined)[], first: Reply): void {
  for (const reply of replies) {
    assert.equal(reply?.text, first.text)
    assert.equal(reply?.status, first.status)
    assert.equal(reply?.headers.get('location'), first.headers.get('location'))
  }
}

let sluice: TestSluice
let replicas: TestSluice['api'][]
let caller: Caller
let otherReplica: Caller
beforeSuite(async (t) => {
  sluice = await startSluice(t)
  const second = await sluice.startApi()
  replicas = [sluice.api, second.api]
  caller = createCaller(sluice)
  otherReplica = createCaller({ url: second.url, key: sluice.key })
})

describe('POST /sources with an Idempotency-Key', () => {
  const accepted = () => readMetric(sluice.api, 'sluice_threads_accepted_total')

  test('gets the first answer again, at any replica, although a newer thread was posted meanwhile', async () => {
    const key = newKey()
    const thread = someThread()
    const first = await caller.post(thread, key)
    assert.equal(storedIn(first).source.outcome, 'created')
    storedIn(await caller.post({ ...thread, title: 'newer' }))
    const before = await accepted()
    assertSame([await caller.post(thread, key), await otherReplica.post(thread, key)], first)
    assert.equal(await accepted(), before)
    const stored = await sluice.db.collection('sources').findOne({ externalId: thread.externalId })
    assert.equal(stored?.title, 'newer')
  })

  test('has an X-Request-Id of its own, and its log line says that it is a replay', async () => {
    const key = newKey()
    const thread = someThread()
    const first = await caller.post(thread, key)
    const second = await caller.post(thread, { ...key, 'x-request-id': 'the-second' })
    assertSame([second], first)
    assert.equal(second.headers.get('x-request-id'), 'the-second')
    const line = await sluice.api.line(
      ({ requestId, msg }) => msg === 'request.answered' && requestId === 'the-second',
    )
    assert.equal(line.replayed, true)
  })

  test('is the same request with other white space, order of fields and unknown fields', async () => {
    const key = newKey()
    const thread = someThread({ createdAt: '2024-05-01' })
    const first = await caller.post(thread, key)
    const { title, ...others } = thread
    const same = JSON.stringify(
      { ...others, colour: 'red', createdAt: '2024-05-01T02:00:00+02:00', title },
      null,
      2,
    )
    assertSame([await caller.post(same, key)], first)
  })

  test('takes the key with quotation marks and without them for the same one', async () => {
    const thread = someThread()
    const first = await caller.post(thread, { 'idempotency-key': '"order:1/a=b"' })
    assertSame([await caller.post(thread, { 'idempotency-key': 'order:1/a=b' })], first)
  })

  test('is refused if the key stands for another body', async () => {
    const key = newKey()
    const thread = someThread()
    storedIn(await caller.post(thread, key))
    problemIn(
      await caller.post({ ...thread, title: 'another' }, key),
      422,
      'idempotency_key_reused',
    )
    problemIn(await otherReplica.post(someThread(), key), 422, 'idempotency_key_reused')
    const stored = await sluice.db.collection('sources').findOne({ externalId: thread.externalId })
    assert.equal(stored?.title, thread.title)
  })

  test('is refused if the key stands for a request that did not wait', async () => {
    const key = newKey()
    const thread = someThread()
    acceptedIn(await caller.post(thread, { ...key, prefer: 'respond-async' }))
    problemIn(await caller.post(thread, key), 422, 'idempotency_key_reused')
  })

  test('knows nothing of the same key of another tenant', async () => {
    const key = newKey()
    const thread = someThread()
    storedIn(await caller.post(thread, key))
    const other = await createKey(sluice.db, { tenant: 'other', name: 'test' })
    const { source } = storedIn(
      await createCaller({ url: sluice.url, key: other.key }).post({ ...thread, url: 'u' }, key),
    )
    assert.equal(source.outcome, 'created')
  })

  test('gets the same 202 with the same job if it does not wait', async () => {
    const key = { ...newKey(), prefer: 'respond-async' }
    const thread = someThread()
    const first = await caller.post(thread, key)
    acceptedIn(first)
    await caller.get(jobPathIn(first), { prefer: 'wait=20' })
    const before = await accepted()
    assertSame([await caller.post(thread, key), await otherReplica.post(thread, key)], first)
    assert.equal(await accepted(), before)
  })

  test('runs again once its key was evicted', async (t) => {
    const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
    t.onTestFinished(() => redis.disconnect())
    const { base } = queueKeys(sluice.settings.QUEUE ?? '')
    const key = newKey()
    const thread = someThread()
    assert.equal(storedIn(await caller.post(thread, key)).source.outcome, 'created')
    const claims = await redis.keys(`${base.replace('{', '\\{')}claim:*`)
    for (const claim of claims) {
      const ms = await redis.pttl(claim)
      assert.ok(ms > 23 * 3_600_000 && ms <= 24 * 3_600_000, `${ms} ms`)
    }
    await redis.del(claims)
    assert.equal(storedIn(await caller.post(thread, key)).source.outcome, 'unchanged')
  })

  const invalid = [
    '',
    '""',
    '"open',
    'a b',
    'a, b',
    '"a", "a"',
    '"a";p=1',
    '"é"',
    'é',
    '"\\a"',
    `"${'x'.repeat(256)}"`,
  ]
  for (const value of invalid) {
    test(`is refused with the key ${value.slice(0, 20)}`, async () => {
      const headers = { 'idempotency-key': Buffer.from(value).toString('latin1') || ' ' }
      const { detail, errors } = problemIn(
        await caller.post(someThread(), headers),
        400,
        'idempotency_key_invalid',
      )
      assert.match(detail, /1 to 255/)
      assert.equal(errors?.[0]?.code, 'header_invalid')
    })
  }

  test('claims nothing if it is refused for its content', async () => {
    const key = newKey()
    problemIn(await caller.post({}, key), 400, 'request_invalid')
    storedIn(await caller.post(someThread(), key))
  })

  test('takes a key of 255 characters', async () => {
    storedIn(await caller.post(someThread(), { 'idempotency-key': 'x'.repeat(255) }))
  })

  test('is the only request that takes the header', async () => {
    const others: [path: string, method: string][] = [
      ['/sources:batch', 'POST'],
      ['/jobs/1', 'GET'],
      ['/limits', 'GET'],
    ]
    for (const [path, method] of others)
      problemIn(
        await caller.send(path, { method, headers: newKey() }),
        400,
        'idempotency_key_invalid',
      )
  })
})

describe('a request that repeats one in progress', () => {
  beforeAll(async () => {
    for (const worker of sluice.workers) {
      worker.signal('SIGTERM')
      await worker.ended
    }
  })
  const accepted = async () => {
    const counts = await Promise.all(
      replicas.map((api) => readMetric(api, 'sluice_threads_accepted_total')),
    )
    return counts.reduce((one, other) => one + other)
  }

  test('waits for the same job, at any replica, and gets the same answer', async () => {
    const key = newKey()
    const thread = someThread()
    const before = await accepted()
    const posts = [caller, otherReplica, caller, otherReplica].map((one) => one.post(thread, key))
    await Promise.all(replicas.map((api) => untilMetric(api, 'sluice_awaited_jobs', 1)))
    // A caller that gives up gets the job's id, and asks again.
    const pending = await caller.post(thread, { ...key, prefer: 'wait=1' })
    assert.equal(pending.status, 202)
    const worker = await sluice.startWorker()
    const replies = await Promise.all(posts)
    const [first] = replies
    assert.ok(first !== undefined)
    assert.equal(storedIn(first).source.outcome, 'created')
    assertSame([...replies, await caller.post(thread, { ...key, prefer: 'wait=1' })], first)
    worker.signal('SIGTERM')
    await worker.ended
    const { externalId } = thread
    assert.equal(
      worker.log.filter((line) => line.msg === 'job.stored' && line.externalId === externalId)
        .length,
      1,
    )
    assert.equal((await accepted()) - before, 1)
  })
})
