import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { createKey } from '@sluice/credentials/keys'
import { connectRetrying } from '@sluice/process/redis'
import type { SourceDocument } from '@sluice/store'
import { sourceIdOf } from '@sluice/store/ids'
import { type TestContext, test } from 'vitest'
import type { Target } from '../support/post-thread.ts'
import { runSluice } from '../support/run-sluice.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { createCaller } from './support/caller.ts'
import { acceptedIn, jobIn, jobPathIn, problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

/** Starts a Sluice, and makes callers of two tenants and an operator. `tenant` may be deleted. */
async function open(t: TestContext, tenant: string) {
  const sluice = await startSluice(t)
  const { key } = await createKey(sluice.db, { tenant, name: 'deletes', deletes: true })
  const callerOf = async (details: Parameters<typeof createKey>[1]) =>
    createCaller({ url: sluice.url, key: (await createKey(sluice.db, details)).key })
  return {
    sluice,
    key,
    acme: createCaller({ url: sluice.url, key }),
    globex: await callerOf({ tenant: 'globex', name: tenant }),
    operator: await callerOf({ role: 'operator', name: tenant }),
    deleteAcme: () => runSluice(sluice, 'tenants', 'delete', tenant, '--yes'),
  }
}

const ERASURE = { method: 'POST', headers: { 'content-type': 'application/json' } }

const sourcesOf = ({ db }: TestSluice, tenant: string) =>
  db.collection<SourceDocument>('sources').find({ tenant }).toArray()

/** The keys in Redis whose name or value has a text. */
async function findInRedis({ settings }: TestSluice, text: string): Promise<string[]> {
  const { REDIS_URL = '', QUEUE = '' } = settings
  const redis = connectRetrying({ redisUrl: REDIS_URL, queue: '' }, () => {})
  const keys = await redis.keys(`*${QUEUE}*`)
  const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)))
  redis.disconnect()
  return keys.filter((key, at) => key.includes(text) || dumps[at]?.includes(text))
}

test.concurrent('a deleted tenant leaves no key, job, result, import or thread, and the others keep theirs', async (t) => {
  const { sluice, acme, globex, operator, deleteAcme } = await open(t, 'acme')
  const broken = sourceIdOf('acme', { service: 'slack', externalId: 'broken' })
  const anySources = sluice.db.collection<{ _id: string }>('sources')
  await anySources.insertOne({ _id: broken })
  const failed = await acme.post(someThread({ externalId: 'broken' }), { prefer: 'respond-async' })
  assert.equal(jobIn(await acme.get(jobPathIn(failed), { prefer: 'wait=30' })).state, 'failed')
  await anySources.deleteOne({ _id: broken })
  const quotes = [{ externalId: 'a', text: 'one' }, { text: 'two' }]
  const kept = storedIn(await globex.post(someThread({ externalId: 'one', quotes })))
  storedIn(await acme.post(someThread({ externalId: 'one', quotes }), { 'idempotency-key': 'a' }))
  const retained = await acme.post(someThread({ quotes }), { prefer: 'respond-async' })
  await acme.get(jobPathIn(retained), { prefer: 'wait=30' })
  const lines = ['x', 'y'].map((externalId) => JSON.stringify(someThread({ externalId, quotes })))
  const imported = await acme.postImport(lines.join('\n'), { prefer: 'respond-async' })
  await until('the import has ended', async () => {
    const found = await acme.get(imported.headers.get('location') ?? '')
    return /"completed"/.test(found.text)
  })

  const opened = await acme.send('/erasures', { ...ERASURE, body: { speaker: 'Ada', reason: 'r' } })
  assert.equal(opened.status, 202, opened.text)
  const erasures = async () => (await acme.get('/erasures')).text
  await until('the erasure is completed', async () => /"completed"/.test(await erasures()))

  const { code, stdout, stderr } = await deleteAcme()
  assert.deepEqual(
    [code, stdout],
    [0, 'Deleted the tenant acme: its keys, its jobs, and 4 threads.\n'],
    stderr,
  )
  assert.deepEqual(await sourcesOf(sluice, 'acme'), [])
  const left = await sluice.db.collection('quotes').distinct('sourceId')
  assert.deepEqual(left, [kept.source.id])
  assert.equal((await sourcesOf(sluice, 'globex')).length, 1)
  problemIn(await acme.post(someThread()), 403, 'api_key_invalid')
  assert.match((await operator.get('/admin/jobs?tenant=acme')).text, /"jobs":\[\]/)
  for (const name of ['retained', 'claims', 'imports'])
    assert.deepEqual(await findInRedis(sluice, `${name}:of:acme`), [])

  // A second run finds nothing, and what comes later is stored as if nothing had been there.
  assert.match((await deleteAcme()).stdout, / and 0 threads\.$/m)
  const { key } = await createKey(sluice.db, { tenant: 'acme', name: 'again', deletes: true })
  const again = createCaller({ url: sluice.url, key })
  assert.deepEqual(JSON.parse((await again.get('/erasures')).text), { erasures: [] })
  const erasure = opened.headers.get('location') ?? ''
  problemIn(await again.get(erasure), 404, 'operation_unknown')
  const stored = storedIn(await again.post(someThread({ externalId: 'one', quotes: [quotes[1]] })))
  assert.deepEqual([stored.source.outcome, stored.quotes[0]?.outcome], ['created', 'created'])
  const [source] = await sourcesOf(sluice, 'acme')
  assert.deepEqual([source?.quoteCount, source?.wordCount], [1, 1])
})

/** Begins an import of lines. Resolves when the API reads them. `end` sends more, and ends it. */
async function beginImport({ url, key }: Target, line: string, prefer: string) {
  const headers = { 'x-api-key': key, 'content-type': 'application/x-ndjson', prefer }
  const open = request(`${url}/sources:batch`, {
    ...{ method: 'POST', agent: false },
    headers: { ...headers, expect: '100-continue' },
  })
  open.flushHeaders()
  const answered = once(open, 'response')
  await once(open, 'continue')
  open.write(line)
  return async (more: string): Promise<string> => {
    open.end(more)
    const [response] = await answered
    return `${response.statusCode} ${await text(response)}`
  }
}

test.concurrent('what a tenant posted before, and what still waits or is uploaded, is gone once its deletion is completed', async (t) => {
  const { sluice, key, acme, operator, deleteAcme } = await open(t, 'initech')
  const quotes = sluice.db.collection('quotes')
  const line = () => `${JSON.stringify(someThread())}\n`
  const uploads = [
    await beginImport({ url: sluice.url, key }, line(), 'respond-async'),
    await beginImport({ url: sluice.url, key }, '{\n', 'wait=30'),
  ]
  await operator.send('/admin/lanes/bulk:pause', { method: 'POST' })
  for (let at = 0; at < 3; at++)
    acceptedIn(await acme.post(someThread(), { prefer: 'respond-async' }))
  const deleting = deleteAcme()
  const isActive = async () =>
    /"kind":"delete"[^}]*"state":"active"/.test((await operator.get('/admin/operations')).text)
  await until('the deletion begins', isActive)
  const refusedEverywhereAt = Date.now() + 6_000
  await until('no API accepts more', () => Date.now() > refusedEverywhereAt)
  assert(await isActive(), 'the deletion waits for what was accepted')
  await operator.send('/admin/lanes/bulk:resume', { method: 'POST' })
  assert.match((await deleting).stdout, / and 3 threads\.$/m)
  for (const end of uploads) assert.match(await end(line()), /api_key_invalid/)
  assert.deepEqual(await findInRedis(sluice, 'imports:of:initech'), [])
  assert.deepEqual(await sourcesOf(sluice, 'initech'), [])
  assert.equal(await quotes.countDocuments(), 0)
})
