import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ERASED } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { runImport } from '@sluice/importer/test-support'
import type { QuoteDocument, SourceDocument } from '@sluice/store'
import { sourceIdOf } from '@sluice/store/ids'
import { beforeSuite } from '@sluice/test-support'
import type { Db } from 'mongodb'
import { describe, type TestContext, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { type Caller, createCaller, type Reply } from './support/caller.ts'
import { problemIn, sourcePageIn, storedIn } from './support/read-reply.ts'
import { type Body, someThread } from './support/some-thread.ts'

type Thread = Body & { service: string; externalId: string; quotes: Body[] }

/** The threads and the cursor of a page of an export. */
function pageIn({ status, headers, text }: Reply) {
  assert.equal(status, 200, text)
  assert.equal(headers.get('content-type'), 'application/x-ndjson')
  const lines: unknown[] = text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
  const { next } = Object(lines.at(-1))
  const threads = (next === undefined ? lines : lines.slice(0, -1)) as Thread[]
  return { threads, next: next as string | undefined }
}

/** Reads until it is the tenant's turn: on a busy machine, it rests for long after a large read. */
async function getLater(caller: Caller, path: string): Promise<Reply> {
  let reply: Reply | undefined
  await until('it is the turn of the tenant', async () => {
    reply = await caller.get(path)
    return reply.status !== 503
  })
  return reply ?? assert.fail()
}

/** Reads all pages of an export. */
async function exportAll(caller: Caller, query: Record<string, string> = {}) {
  const pages: Thread[][] = []
  for (let after: string | undefined = ''; after !== undefined; ) {
    const params = new URLSearchParams({ ...query, ...(after !== '' && { after }) })
    const { threads, next } = pageIn(await getLater(caller, `/sources:export?${params}`))
    pages.push(threads)
    after = next
  }
  return { pages, threads: pages.flat() }
}

const namesOf = (threads: readonly Thread[]) => threads.map(({ externalId }) => externalId).sort()

/**
 * All documents without what is new by nature: stamps, versions, requests. A date that came from
 * the acceptance is sent by the export.
 */
async function documentsIn(db: Db, tenant: string) {
  const sources = await db
    .collection<SourceDocument>('sources')
    .find({ tenant })
    .sort({ _id: 1 })
    .toArray()
  const quotes = await db
    .collection<QuoteDocument>('quotes')
    .find({ sourceId: { $in: sources.map(({ _id }) => _id) } })
    .sort({ sourceId: 1, position: 1 })
    .toArray()
  const derivedIn = ({ derived = [] }: { derived?: string[] }) =>
    derived.filter((name) => name !== 'createdAt')
  return {
    sources: sources.map(({ acceptedAt: _, meta, ...source }) => ({
      ...source,
      derived: derivedIn(meta),
    })),
    quotes: quotes.map(({ position: _, meta, ...quote }) => ({
      ...quote,
      derived: derivedIn(meta),
      digest: meta.textDigest,
    })),
  }
}

const EVERY_FIELD = {
  title: 'Dark mode',
  channelName: 'general',
  channelId: 'C1',
  description: 'About colours',
  url: 'https://a.example/1',
  createdAt: '2020-02-29T12:34:56.789Z',
  upVotes: 5,
  downVotes: 2,
  score: -1.5,
}
const ofAda = { text: 'Yes', speaker: 'Ada', createdAt: '2024-05-01' }

/** Posts of every kind. Some are for the same source. */
const POSTS: Body[] = [
  {
    ...EVERY_FIELD,
    externalId: 'every',
    quotes: [
      { externalId: 'b', text: 'é🎹\u0001"\\\n', speaker: 'Bo', upVotes: 1, downVotes: 3 },
      { externalId: 'a', text: 'a', username: 'Ada', replyingTo: 'b', score: 7, upVotes: 1 },
      { text: 'no id', createdAt: '0001-01-02' },
    ],
  },
  { externalId: 'empty', quotes: [], upVotes: 3 },
  { externalId: 'zero', createdAt: '1970-01-01', quotes: [{ ...ofAda, createdAt: '0001-01-01' }] },
  { externalId: 'derived', score: undefined, downVotes: 2, quotes: [{ ...ofAda, upVotes: 2 }] },
  { externalId: 'equal', quotes: [ofAda, { text: 'No' }, ofAda, { ...ofAda, upVotes: 1 }] },
  { externalId: 'merged', title: 'First', quotes: [{ externalId: '2', text: 'two' }, ofAda] },
  { externalId: 'merged', title: 'Last', quotes: [{ externalId: '1', text: 'one' }] },
  { externalId: 'merged', title: 'Last', quotes: [ofAda, ofAda, { externalId: '2', text: '2' }] },
  { externalId: 'every', service: 'email', quotes: [{ externalId: 'm', text: 'mail' }] },
]

async function writtenTo(t: TestContext, threads: readonly object[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-export-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'threads.ndjson')
  await writeFile(file, threads.map((thread) => `${JSON.stringify(thread)}\n`).join(''))
  return file
}

describe("a tenant's threads can be exported", () => {
  let sluice: TestSluice
  /** Another deployment, in which a tenant of the same name has nothing. */
  let other: SharedSluice
  let caller: Caller
  beforeSuite(async (t) => {
    ;[sluice, other] = await Promise.all([startSluice(t), shareSluice(t)])
    caller = await keyOf(other.tenant, { name: 'reads' })
  })

  async function keyOf(tenant: string, more: object = {}): Promise<Caller> {
    const { key } = await createKey(sluice.db, { tenant, name: tenant, ...more })
    return createCaller({ url: sluice.url, key })
  }

  async function erase(from: Caller, speaker: string): Promise<void> {
    const headers = { 'content-type': 'application/json' }
    const body = { speaker }
    const { status, text } = await from.send('/erasures', { method: 'POST', headers, body })
    assert.equal(status, 202, text)
    await until('the erasure is completed', async () => {
      const reply = await from.get(`/erasures/${JSON.parse(text).id}`)
      return JSON.parse(reply.text).state === 'completed'
    })
  }

  test('an import into an empty deployment makes the same documents and answers of them', async (t) => {
    for (const post of POSTS) storedIn(await caller.post(someThread(post)))
    // More than one line, with equal quotes on each, of which one is deleted and others are erased.
    const plus = { text: '+1', speaker: 'Ada' }
    const many = Array.from({ length: 16 }, (_, at) => [
      plus,
      { text: 'Hi', speaker: 'Eve' },
      { externalId: `q${at}`, text: `${at % 10}`.repeat(90_000) },
    ])
    const large = someThread({ externalId: 'large', quotes: [...many.flat(), plus] })
    const { source, quotes } = storedIn(await caller.post(large))
    const deleting = await keyOf(other.tenant, { deletes: true })
    const path = `/sources/${source.id}/quotes/${quotes[3]?.id}`
    assert.equal((await deleting.send(path, { method: 'DELETE' })).status, 200)
    await erase(deleting, 'Eve')

    const { threads } = await exportAll(caller)
    const names = [
      'derived',
      'empty',
      'equal',
      'every',
      'every',
      'large',
      'large',
      'merged',
      'zero',
    ]
    assert.deepEqual(namesOf(threads), names)
    const erased = threads.flatMap((thread) => thread.quotes.filter(({ text }) => text === ERASED))
    assert.equal(erased.length, many.length)
    const file = await writtenTo(t, threads)
    const deps = { folder: tmpdir(), env: { SLUICE_API_KEY: other.key } }
    const { code, stdout, stderr } = await runImport(deps, ['--url', other.url, file])
    assert.equal(code, 0, `${stdout}${stderr}`)
    const { tenant } = other
    const documents = await documentsIn(sluice.db, tenant)
    assert.deepEqual(await documentsIn(other.db, tenant), documents)
    const there = createCaller(other)
    for (const { _id } of await sluice.db.collection('sources').find({ tenant }).toArray()) {
      const read = async (from: Caller) => {
        const { source, quotes } = sourcePageIn(await getLater(from, `/sources/${_id}?limit=1000`))
        return { source, quotes: quotes.map(({ position: _, ...quote }) => quote) }
      }
      assert.deepEqual(await read(there), await read(caller))
    }
    const again = await exportAll(there)
    assert.deepEqual(again.threads, threads)
  })

  test('a score that follows from votes is left out, so that later votes count', async () => {
    const tenant = await keyOf('votes')
    storedIn(await tenant.post(someThread({ externalId: 'derived', upVotes: 3 })))
    storedIn(await tenant.post(someThread({ externalId: 'sent', upVotes: 3, score: 3 })))
    const { threads } = await exportAll(tenant)
    assert.deepEqual(threads.map(({ externalId, score }) => [externalId, score]).sort(), [
      ['derived', undefined],
      ['sent', 3],
    ])
  })

  test('in pages that go on within a thread, while the quota of the key is used up', async () => {
    const limits = { quotesPerSecond: 1, burstQuotes: 1 }
    const tenant = await keyOf('pages', { limits })
    const quotes = Array.from({ length: 40 }, () => ({ text: 'é'.repeat(10_000) }))
    storedIn(await tenant.post(someThread({ externalId: 'long', quotes })))
    const { threads, pages } = await exportAll(tenant)
    assert.ok(pages.length > 3, `${pages.length} pages`)
    for (const page of pages) assert.ok(JSON.stringify(page).length < 500_000)
    const posted = createCaller(other)
    for (const thread of threads) storedIn(await posted.post(thread))
    const id = sourceIdOf(other.tenant, { service: 'slack', externalId: 'long' })
    assert.equal(await other.db.collection('quotes').countDocuments({ sourceId: id }), 40)
  })

  test('nothing of a tombstone, and of a thread what was posted after its deletion', async () => {
    const tenant = await keyOf('deleted')
    const [old, late] = [
      { externalId: 'old', text: 'old' },
      { externalId: 'late', text: 'late' },
    ]
    const thread = someThread({ externalId: 'deleted', quotes: [old, { text: 'no id' }] })
    const { id } = storedIn(await tenant.post(thread)).source
    const sources = sluice.db.collection<SourceDocument>('sources')
    const { meta } = (await sources.findOne({ _id: id })) ?? assert.fail()
    storedIn(await tenant.post({ ...thread, quotes: [late] }))
    // As between the mark of a deletion and the removal of its quotes.
    const deletion = { stamp: meta.stamp, tenant: 'deleted', request: 'r', before: { quotes: 2 } }
    await sources.updateOne({ _id: id }, { $set: { 'meta.deletion': deletion } })
    const tombstone = { _id: 'x'.repeat(24), wordCount: 0, quoteCount: 0 }
    const marks = { version: meta.version, deletion }
    await sluice.db
      .collection<{ _id: string }>('sources')
      .insertOne(Object({ ...tombstone, meta: marks }))
    const { threads } = await exportAll(tenant)
    assert.deepEqual(
      threads.map(({ externalId, quotes }) => [externalId, quotes]),
      [['deleted', [late]]],
    )
  })

  test('those of a service, those posted since a date, and those of a speaker with no other quotes', async () => {
    const tenant = await keyOf('filters')
    const ada = { speaker: 'Ada', text: 'A' }
    storedIn(await tenant.post(someThread({ externalId: '1', quotes: [ada, { text: 'b' }] })))
    storedIn(await tenant.post(someThread({ externalId: '2', service: 'email' })))
    const since = new Date(Date.now() + 1).toISOString()
    const others = ['A.*', 'Ade\u0301\n'].map((speaker) => ({ text: 'A', speaker }))
    storedIn(await tenant.post(someThread({ externalId: '3', quotes: others })))
    const named = async (query: Record<string, string>) =>
      namesOf((await exportAll(tenant, query)).threads)
    assert.deepEqual(await named({}), ['1', '2', '3'])
    assert.deepEqual(await named({ service: 'email' }), ['2'])
    assert.deepEqual(await named({ since }), ['3'])
    // As an erasure compares names.
    for (const speaker of ['A.*', '\u00a0Adé']) assert.deepEqual(await named({ speaker }), ['3'])
    const { threads } = await exportAll(tenant, { speaker: 'Ada' })
    assert.partialDeepStrictEqual(
      threads.map(({ quotes }) => quotes),
      [[ada]],
    )
    storedIn(await tenant.post(someThread({ externalId: '1', quotes: [] })))
    assert.deepEqual(await named({ since }), ['1', '3'])
  })

  test("by importers their own tenant's, by operators of a tenant that they name, and not by viewers", async () => {
    const [mine, theirs] = [await keyOf('mine'), await keyOf('theirs')]
    storedIn(await mine.post(someThread({ externalId: 'mine' })))
    storedIn(await theirs.post(someThread({ externalId: 'theirs' })))
    assert.deepEqual(namesOf((await exportAll(theirs)).threads), ['theirs'])
    const messageOf = async (from: Caller, query: string) =>
      problemIn(await from.get(`/sources:export${query}`), 400, 'request_invalid').errors?.[0]
    assert.partialDeepStrictEqual(await messageOf(theirs, '?tenant=mine'), { pointer: '/tenant' })
    const operator = await keyOf('', { tenant: undefined, role: 'operator', name: 'on call' })
    assert.deepEqual(namesOf((await exportAll(operator, { tenant: 'mine' })).threads), ['mine'])
    const isRequired = { pointer: '/tenant', code: 'required' }
    for (const query of ['', '?tenant='])
      assert.partialDeepStrictEqual(await messageOf(operator, query), isRequired)
    const viewer = await keyOf('', { tenant: undefined, role: 'viewer', name: 'looks' })
    for (const query of ['', '?tenant=mine'])
      problemIn(await viewer.get(`/sources:export${query}`), 403, 'importer_only')
    problemIn(await caller.get('/sources:export?limit=1'), 400, 'request_invalid')
  })

  test('a cursor of another export, or that nobody was given, is a 400 that names it', async () => {
    const limits = { quotesPerSecond: 1, burstQuotes: 1 }
    const [tenant, stranger] = [await keyOf('cursors', { limits }), await keyOf('strangers')]
    const quotes = Array.from({ length: 20 }, () => ({ text: 'x'.repeat(10_000) }))
    const { source } = storedIn(await tenant.post(someThread({ quotes })))
    const { next = '' } = pageIn(await tenant.get('/sources:export'))
    assert.match(next, /^[\w-]{24}~\d{16}\.\d{6}~[\w-]{8}$/)
    const [id, position, tag] = next.split('~')
    const refused = async (from: Caller, query: Record<string, string>) => {
      const reply = await from.get(`/sources:export?${new URLSearchParams(query)}`)
      const [error] = problemIn(reply, 400, 'request_invalid').errors ?? []
      assert.equal(error?.pointer, '/after')
    }
    await refused(stranger, { after: next })
    for (const filter of [{ service: 'slack' }, { since: '2020-01-01' }, { speaker: 'Ada' }])
      await refused(tenant, { after: next, ...filter })
    const forged = ['', 'x', `${next}x`, `${id}~${tag}x`, `~${position}~${tag}`, `${id}~1~${tag}`]
    for (const after of [...forged, `{"$gt":""}~${tag}`, `${'é'.repeat(24)}~${tag}`])
      await refused(tenant, { after })
    // A cursor that could have been given shows nothing of another tenant.
    const { source: theirs } = storedIn(await stranger.post(someThread({ quotes })))
    for (const at of [theirs.id, `${theirs.id}~0000000000000000.000000`]) {
      const { threads } = pageIn(await tenant.get(`/sources:export?after=${at}~${tag}`))
      assert.ok(threads.every(({ externalId }) => externalId === source.externalId))
    }
  })
})
