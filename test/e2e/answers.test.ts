import assert from 'node:assert/strict'
import { createKey, revokeKey } from '@sluice/credentials/keys'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

describe('every answer has a status and headers that describe it', () => {
  let sluice: SharedSluice
  let caller: Caller
  let stranger: Caller
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    caller = createCaller(sluice)
    stranger = createCaller({ url: sluice.url })
  })

  const keys: [it: string, of: (key: string) => string][] = [
    ['no key', () => ''],
    ['a text that is no key', () => 'secret'],
    ['a key with a typo', (key) => key.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))],
    ['two keys', (key) => `${key}, ${key}`],
    ['a key in capitals', (key) => key.toUpperCase()],
    ['a key that is very long', () => 'slc_'.padEnd(8_000, 'x')],
  ]
  for (const [it, wrongOf] of keys) {
    test(`${it} gets a 403`, async () => {
      const wrong = wrongOf(sluice.key)
      const reply = await stranger.post(someThread(), { 'x-api-key': wrong })
      problemIn(reply, 403, 'api_key_invalid')
      assert.ok(wrong === '' || !reply.text.includes(wrong), 'the key is repeated')
    })
  }

  test('a key of another database, a revoked key and an expired key get a 403', async () => {
    const { db, tenant } = sluice
    const elsewhere = await createKey(db.client.db(`${db.databaseName}_2`), {
      tenant,
      name: 'of another database',
    })
    await db.client.db(`${db.databaseName}_2`).dropDatabase()
    const revoked = await createKey(db, { tenant, name: 'revoked' })
    await revokeKey(db, revoked.record.id)
    const expired = await createKey(db, {
      tenant,
      name: 'expired',
      expiresAt: new Date(Date.now() + 3_600_000),
    })
    const keys = db.collection<{ _id: string; expiresAt: Date }>('keys')
    const ended = await keys.updateOne(
      { _id: expired.record.id },
      { $set: { expiresAt: new Date(Date.now() - 1) } },
    )
    assert.equal(ended.modifiedCount, 1)
    for (const { key } of [elsewhere, revoked, expired]) {
      problemIn(await stranger.post(someThread(), { 'x-api-key': key }), 403, 'api_key_invalid')
    }
  })

  test('a key outside the X-Api-Key header gets a 403', async () => {
    problemIn(
      await stranger.get(`/jobs/1?x-api-key=${sluice.key}`, {
        authorization: `Bearer ${sluice.key}`,
      }),
      403,
      'api_key_invalid',
    )
  })

  for (const path of ['/livez', '/readyz', '/limits']) {
    test(`${path} answers 200 without a key`, async () => {
      const { status, headers } = await stranger.get(path)
      assert.equal(status, 200)
      assert.match(headers.get('x-request-id') ?? '', /\S/)
    })
  }

  test('GET /limits lists every bound', async () => {
    const { limits, quota, queue, waitSeconds } = JSON.parse((await stranger.get('/limits')).text)
    const bounds = Object.fromEntries(
      Object.entries<{ value: number }>({ ...limits, ...quota, ...queue, waitSeconds }).map(
        ([name, { value }]) => [name, value],
      ),
    )
    assert.partialDeepStrictEqual(bounds, {
      bodyBytes: 10_485_760,
      quotes: 10_000,
      externalId: 512,
      title: 2_000,
      text: 100_000,
      url: 2_048,
      description: 20_000,
      string: 2_000,
      quotesPerSecond: 10_000,
      burstQuotes: 600_000,
      queueThreads: 200_000,
      queueBytes: 1_073_741_824,
      waitingSeconds: 5,
      tenantShare: 0.5,
      waitSeconds: 30,
    })
  })

  for (const path of [
    '/source',
    '/sources/',
    '/Sources',
    '/jobs',
    '/jobs/',
    '/%',
    '/%00',
    '/..%2fsources',
    '//sources',
  ]) {
    test(`${path} is unknown: it gets a 404, or a 403 without a key`, async () => {
      problemIn(await caller.get(path), 404, 'route_unknown')
      problemIn(await stranger.get(path), 403, 'api_key_invalid')
    })
  }

  const methods: [method: string, path: string, allow: string][] = [
    ...['PUT', 'PATCH', 'OPTIONS'].map((method): [string, string, string] => [
      method,
      '/sources',
      'POST, GET, DELETE, HEAD',
    ]),
    ['POST', '/jobs/1', 'GET, HEAD'],
    ['DELETE', '/jobs/1', 'GET, HEAD'],
    ['POST', '/limits', 'GET, HEAD'],
  ]
  for (const [method, path, allow] of methods) {
    test(`${method} ${path} gets a 405 with Allow`, async () => {
      const reply = await caller.send(path, { method })
      problemIn(reply, 405, 'method_not_allowed')
      assert.equal(reply.headers.get('allow'), allow)
    })
  }

  test('HEAD answers as GET does, without a body', async () => {
    const { status, text } = await caller.send('/limits', { method: 'HEAD' })
    assert.deepEqual([status, text], [200, ''])
  })

  test('a problem names its path, without the query', async () => {
    const { instance } = problemIn(await caller.get('/nowhere?key=secret'), 404, 'route_unknown')
    assert.equal(instance, '/nowhere')
  })

  const ids: [it: string, id: string, kept: boolean][] = [
    ['of visible ASCII', 'import-7/line:12~!', true],
    ['of 128 characters', 'a'.repeat(128), true],
    ['of 129 characters', 'a'.repeat(129), false],
    ['with a space', 'a b', false],
    ['with another script', 'é', false],
  ]
  for (const [it, id, kept] of ids) {
    test(`an X-Request-Id ${it} is ${kept ? 'kept' : 'replaced'}`, async () => {
      const good = await caller.post(someThread(), { 'x-request-id': id })
      const bad = await caller.post({}, { 'x-request-id': id })
      storedIn(good)
      assert.equal(good.headers.get('x-request-id') === id, kept)
      assert.equal(problemIn(bad, 400, 'request_invalid').requestId === id, kept)
    })
  }

  test('no two answers share a generated X-Request-Id', async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => stranger.get('/limits')))
    assert.equal(new Set(replies.map(({ headers }) => headers.get('x-request-id'))).size, 20)
  })

  test('no cache may keep an answer, a problem or an answer in parts', async () => {
    const replies = await Promise.all([
      caller.post(someThread()),
      ...['/limits', '/nowhere', '/sources:export?limit=1'].map((path) => caller.get(path)),
    ])
    for (const { headers } of replies) assert.equal(headers.get('cache-control'), 'no-store')
  })

  test('no answer names the software behind it', async () => {
    const { headers } = await caller.get('/nowhere')
    assert.deepEqual(
      [headers.get('x-powered-by'), headers.get('server'), headers.get('etag')],
      [null, null, null],
    )
  })
})
