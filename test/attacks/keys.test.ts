// Attacks on API keys: wrong ones, dead ones, ones in the wrong place; and a search for any trace
// of a key when all is done.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createKey, revokeKey, rotateKey } from '@sluice/credentials/keys'
import { beforeSuite, requiredUrl, testDatabase } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type Caller, createCaller, type Reply, type Sent } from '../e2e/support/caller.ts'
import { problemIn, storedIn } from '../e2e/support/read-reply.ts'
import { someThread } from '../e2e/support/some-thread.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { BUSY_MS, until } from '../support/until.ts'
import { exchange } from './support/exchange.ts'
import { type Evidence, mongodbContents, redisContents, tracesOf } from './support/key-traces.ts'
import { metricsOf } from './support/unharmed.ts'
import { openWiretap, type Wiretap } from './support/wiretap.ts'

/** A revoked key stops everywhere within five seconds. */
const REVOKED_MS = 5_000 + BUSY_MS
/** How long a key lives that must be used once before it expires. */
const LIFE_MS = 5_000
const UNKNOWN =
  'The key in x-api-key is unknown, revoked or expired. An operator creates keys with sluice keys create.'

describe('API keys', () => {
  let sluice: TestSluice
  const taps: Record<'Redis' | 'MongoDB', Wiretap | undefined> = {
    Redis: undefined,
    MongoDB: undefined,
  }
  /** Every key of this test. */
  const keys: string[] = []
  const answers: Evidence[] = []
  let foreign = ''

  beforeSuite(async (t) => {
    taps.Redis = await openWiretap(t, requiredUrl('REDIS_URL'))
    taps.MongoDB = await openWiretap(t, requiredUrl('MONGODB_URL'))
    sluice = await startSluice(t, { redisUrl: taps.Redis.url, mongodbUrl: taps.MongoDB.url })
    keys.push(sluice.key)
    foreign = (await createKey(await testDatabase(t), { tenant: 'acme', name: 'foreign' })).key
    keys.push(foreign)
  })

  /** A caller whose answers are kept as evidence. */
  function callerWith(key: string | undefined): Caller {
    const caller = createCaller({ url: sluice.url, ...(key !== undefined && { key }) })
    const send = async (path: string, sent: Sent) => keep(await caller.send(path, sent))
    return {
      send,
      get: (path, headers = {}) => send(path, { headers }),
      post: async (body, headers) => keep(await caller.post(body, headers)),
      postImport: async (body, headers) => keep(await caller.postImport(body, headers)),
    }
  }
  function keep(reply: Reply): Reply {
    answers.push({
      where: 'an answer',
      text: `${JSON.stringify([...reply.headers])} ${reply.text}`,
    })
    return reply
  }
  async function newKey(
    name: string,
    details: { tenant?: string; expiresAt?: Date } = {},
  ): Promise<string> {
    const { key } = await createKey(sluice.db, { tenant: 'acme', name, ...details })
    keys.push(key)
    return key
  }
  const isRefused = async (key: string) => (await callerWith(key).post(someThread())).status === 403

  const wrong: [it: string, change: (key: string) => string][] = [
    ['cut off at its end', (key) => key.slice(0, -1)],
    ['cut off in its middle', (key) => key.slice(0, 20)],
    ['without its prefix', (key) => key.slice(4)],
    ['with one character more', (key) => `${key}0`],
    [
      'with one character changed',
      (key) => key.slice(0, 10) + (key[10] === 'a' ? 'b' : 'a') + key.slice(11),
    ],
    ['in upper case', (key) => key.toUpperCase()],
    ['twice, as two headers are joined', (key) => `${key}, ${key}`],
    ['in quotes', (key) => `"${key}"`],
    ['as a bearer token', (key) => `Bearer ${key}`],
    ['encoded', (key) => encodeURIComponent(key).replace('_', '%5F')],
    ['as its hash, which the store holds', (key) => createHash('sha256').update(key).digest('hex')],
    ['of another installation', () => foreign],
    ['that is an operator', () => '{"$ne":null}'],
    ['of 8,000 characters', () => 'slc_'.repeat(2_000)],
  ]
  for (const [it, change] of wrong) {
    test(`a key ${it} gets the answer of every wrong key`, async () => {
      const { detail, title } = problemIn(
        await callerWith(change(sluice.key)).post(someThread()),
        403,
        'api_key_invalid',
      )
      assert.deepEqual([title, detail], ['API key missing or invalid', UNKNOWN])
    })
  }

  test('a key in any other header or in the path opens nothing', async () => {
    const key = await newKey('misplaced')
    const nowhere = callerWith(undefined)
    const headers = {
      authorization: `Bearer ${key}`,
      cookie: `x-api-key=${key}`,
      'x-apikey': key,
      'user-agent': key,
    }
    problemIn(await nowhere.post(someThread(), headers), 403, 'api_key_invalid')
    for (const path of [
      `/jobs/1?x-api-key=${key}`,
      `/${key}`,
      `/jobs/${key}`,
      `/limits/${key.replace('_', '%5f')}`,
    ]) {
      problemIn(await nowhere.get(path), 403, 'api_key_invalid')
    }
  })

  test('a key that its own caller sends in the wrong place is neither stored nor repeated', async () => {
    const caller = callerWith(sluice.key)
    const key = await newKey('careless')
    const headers = {
      'x-request-id': key,
      traceparent: key,
      referer: `http://a/${key}`,
      prefer: `wait=20; key=${key}`,
    }
    storedIn(await caller.post(someThread(), headers))
    await caller.post(someThread(), { 'x-request-id': `id-${key}-1`, prefer: 'respond-async' })
    for (const path of [
      `/jobs/${key}`,
      `/batches/${key}`,
      `/${key}/x`,
      `/jobs/${encodeURIComponent(key).replace('_', '%5f')}`,
    ]) {
      assert.equal((await caller.get(path)).status, 404)
    }
    const { key: operator } = await createKey(sluice.db, { role: 'operator', name: 'operator' })
    keys.push(operator)
    for (const path of [`/admin/jobs/${key}`, `/admin/operations/${key}`]) {
      assert.equal((await callerWith(operator).get(path)).status, 404)
    }
    await caller.post(`{"title": ${key}`)
    await caller.post(someThread(), { 'content-type': key })
    await caller.post(someThread(), { 'content-encoding': key })
    for (const bytes of [
      `GET /${key}\r\n\r\n`,
      `GET / HTTP/1.1\r\nhost: ${key}\r\n${key}\r\n\r\n`,
    ]) {
      for (const { body } of await exchange(sluice.url, bytes))
        answers.push({ where: 'a raw answer', text: body })
    }
  })

  test('a revoked key stops within seconds, and gets the answer of a wrong one', async () => {
    const key = await newKey('revoked')
    storedIn(await callerWith(key).post(someThread()))
    await revokeKey(sluice.db, 'revoked')
    await until('the revoked key is refused', () => isRefused(key), REVOKED_MS)
    const { detail } = problemIn(await callerWith(key).post(someThread()), 403, 'api_key_invalid')
    assert.equal(detail, UNKNOWN)
  })

  test('a key that expires works until then, and not after', async () => {
    const expiresAt = new Date(Date.now() + LIFE_MS)
    const key = await newKey('short-lived', { expiresAt })
    storedIn(await callerWith(key).post(someThread()))
    await until('the expired key is refused', () => isRefused(key), LIFE_MS + REVOKED_MS)
    assert.ok(Date.now() >= expiresAt.getTime())
  })

  test('a key that was replaced stops when its overlap ends, and its successor works', async () => {
    const key = await newKey('replaced')
    const { key: successor } = await rotateKey(sluice.db, 'replaced', { overlapSeconds: 1 })
    keys.push(successor)
    storedIn(await callerWith(successor).post(someThread()))
    await until('the replaced key is refused', () => isRefused(key), REVOKED_MS)
    storedIn(await callerWith(successor).post(someThread()))
  })

  test('lookups send only the hash of a key to MongoDB', () => {
    const wire = taps.MongoDB?.recorded().join('') ?? ''
    for (const key of [sluice.key, foreign])
      assert.ok(wire.includes(createHash('sha256').update(key).digest('hex')))
    assert.deepEqual(tracesOf(keys, [{ where: 'the wire to MongoDB', text: wire }]), [])
  })

  test('no eight consecutive characters of a key are in a log, Redis, MongoDB, a metric, an answer, or on a wire', async () => {
    const processes = [sluice.api, ...sluice.workers]
    const logs = processes.flatMap(({ log }) =>
      log.map((line) => ({ where: 'a log', text: JSON.stringify(line) })),
    )
    const metrics = await Promise.all(
      processes.map(async (one) => ({ where: 'metrics', text: await metricsOf(one) })),
    )
    const stored = await redisContents(requiredUrl('REDIS_URL'), sluice.settings.QUEUE ?? '')
    const documents = await mongodbContents(sluice.db)
    const wires = [taps.Redis, taps.MongoDB]
      .flatMap((tap) => tap?.recorded() ?? [])
      .map((text) => ({ where: 'a wire', text }))
    for (const evidence of [logs, metrics, stored, documents, wires, answers])
      assert.notEqual(evidence.length, 0)
    assert.deepEqual(
      tracesOf(keys, [...logs, ...metrics, ...stored, ...documents, ...wires, ...answers]),
      [],
    )
  })
})
