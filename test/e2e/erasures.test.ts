import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createParser, type Erasure, ErasureSchema, type Hit } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { keysWith } from '@sluice/queue/test-support'
import type { SourceDocument } from '@sluice/store'
import { sourceIdOf } from '@sluice/store/ids'
import { beforeSuite } from '@sluice/test-support'
import { test } from 'vitest'
import { runSluice } from '../support/run-sluice.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { type Caller, createCaller, type Reply } from './support/caller.ts'
import {
  acceptedIn,
  jobIn,
  jobPathIn,
  problemIn,
  sourcePageIn,
  storedIn,
} from './support/read-reply.ts'

const settings = { OPERATION_JOBS_PER_SECOND: '1000' }
let shared: TestSluice
let operator: Caller
beforeSuite(async (t) => {
  shared = await startSluice(t, { workers: 2, settings })
  const { key } = await createKey(shared.db, { role: 'operator', name: 'on call' })
  operator = createCaller({ url: shared.url, key })
})

/** Makes two tenants of a test's own, with callers that may delete. */
async function addTenants(sluice = shared) {
  const [tenant, other] = [`acme-${randomUUID()}`, `globex-${randomUUID()}`]
  const keyOf = async (tenant: string) =>
    (await createKey(sluice.db, { tenant, name: 'deletes', deletes: true })).key
  const key = await keyOf(tenant)
  const acme = createCaller({ url: sluice.url, key })
  const globex = createCaller({ url: sluice.url, key: await keyOf(other) })
  const idOf = (externalId: string, of = tenant) => sourceIdOf(of, { service: 'slack', externalId })
  const json = { 'content-type': 'application/json' }
  const open = async (request: object) => {
    const reply = await acme.send('/erasures', {
      ...{ method: 'POST', headers: json, body: request },
    })
    return erasureIn(reply, 202)
  }
  /** Erases, and returns the completed erasure. */
  const erase = async (request: object) => {
    const { id } = await open(request)
    return until('the erasure is completed', async () => {
      const erasure = erasureIn(await acme.get(`/erasures/${id}`), 200)
      return erasure.state === 'completed' ? erasure : undefined
    })
  }
  return { sluice, tenant, other, key, acme, globex, idOf, open, erase }
}

const parse = createParser(ErasureSchema)
function erasureIn({ status, text }: Reply, expected: number): Erasure {
  assert.equal(status, expected, text)
  const parsed = parse(JSON.parse(text))
  assert.ok(parsed.ok, text)
  return parsed.value
}

const thread = (externalId: string, speaker = 'Åsa', name = 'Åsa', text = 'two words') => ({
  ...{ service: 'slack', externalId, title: `${name} asks`, description: `of ${name}` },
  quotes: [
    { externalId, text, speaker, upVotes: 2 },
    { externalId: `${externalId}-2`, text: 'not hers', speaker: 'Bob', replyingTo: externalId },
  ],
})

test.for(['redact', 'remove'])(
  'what a failed job has of the speaker is gone, also once it is retried: %s',
  { concurrent: true },
  async (mode) => {
    const { sluice, tenant, acme, idOf, erase } = await addTenants()
    const broken = sluice.db.collection<{ _id: string }>('sources')
    const headers = { 'content-type': 'application/json' }
    /** Posts a thread whose job fails. */
    async function postFailing(externalId: string) {
      await broken.insertOne({ _id: idOf(externalId) })
      const posted = await acme.post(thread(externalId), { prefer: 'respond-async' })
      assert.equal(jobIn(await acme.get(jobPathIn(posted), { prefer: 'wait=30' })).state, 'failed')
      await broken.deleteOne({ _id: idOf(externalId) })
      return posted
    }
    const names = [mode, `corrected-${mode}`] as const
    const [posted, failed] = await Promise.all([postFailing(names[0]), postFailing(names[1])])
    // Posted again since, as somebody else's.
    const fields = { title: 'Carl asks', description: 'of Carl' }
    storedIn(await acme.post({ ...thread(names[1], 'Carl'), ...fields }))
    assert.equal((await erase({ speaker: 'Åsa', service: 'slack', mode })).failed, 0)
    assert.doesNotMatch((await operator.get(`/admin${jobPathIn(posted)}`)).text, /two words|Åsa/)
    const body = { filter: { tenant } }
    await operator.send('/admin/jobs:retry', { method: 'POST', headers, body })
    const sourceId = idOf(mode)
    await until('the job is stored', () => sluice.db.collection('quotes').findOne({ sourceId }))
    const { source, quotes } = sourcePageIn(await acme.get(`/sources/${sourceId}`))
    assert.deepEqual([source.title, source.description], ['[erased]', '[erased]'])
    assert.deepEqual(
      quotes.map(({ speaker }) => speaker),
      ['Bob'],
    )
    assert.doesNotMatch((await operator.get(`/admin${jobPathIn(failed)}`)).text, /Åsa/)
    const corrected = sourcePageIn(await acme.get(`/sources/${idOf(names[1])}`))
    assert.deepEqual(
      [corrected.source.title, ...corrected.quotes.map(({ speaker }) => speaker).sort()],
      ['Carl asks', 'Bob', 'Carl'],
    )
  },
)

test.concurrent('an erasure goes on after its workers and its API were killed, with exact totals', async (t) => {
  const sluice = await startSluice(t, { settings })
  const { key, acme, open } = await addTenants(sluice)
  const lines = Array.from({ length: 400 }, (_, at) => JSON.stringify(thread(`t${at}`)))
  assert.equal((await acme.postImport(lines.join('\n'))).status, 200)
  const { id } = await open({ speaker: 'Åsa' })
  const quotes = sluice.db.collection('quotes')
  const erased = () => quotes.countDocuments({ speaker: '[erased]' })
  await until('some are erased', async () => (await erased()) > 0)
  for (const one of [sluice.api, ...sluice.workers]) {
    one.signal('SIGKILL')
    await one.ended
  }
  const [{ url }] = await Promise.all([sluice.startApi(), sluice.startWorker()])
  const { get } = createCaller({ url, key })
  const { threads, failed, ...done } = await until('the erasure is completed', async () => {
    const reply = await get(`/erasures/${id}`)
    const erasure = reply.status === 200 ? erasureIn(reply, 200) : undefined
    return erasure?.state === 'completed' ? erasure : undefined
  })
  assert.deepEqual([threads, done.quotes, failed], [400, 400, 0])
  assert.deepEqual([await erased(), await quotes.countDocuments({ speaker: 'Åsa' })], [400, 0])
  const [totals] = await sluice.db
    .collection('sources')
    .aggregate([
      {
        $group: {
          _id: null,
          words: { $sum: '$wordCount' },
          least: { $min: '$wordCount' },
          quotes: { $sum: '$quoteCount' },
          titles: { $addToSet: '$title' },
        },
      },
    ])
    .toArray()
  assert.deepEqual(totals, { _id: null, words: 800, least: 2, quotes: 800, titles: ['[erased]'] })
})

test.concurrent('a redacted speaker is gone, and stays gone when an older post is delivered', async () => {
  const { sluice, other, acme, globex, idOf, erase } = await addTenants()
  storedIn(await acme.post(thread('one')))
  storedIn(await acme.post(thread('two', 'Åsa Lovelace')))
  storedIn(await globex.post(thread('one')))
  const erasure = await erase({ speaker: ' Åsa\u00a0', reason: 'asked for' })
  assert.deepEqual(
    [erasure.threads, erasure.quotes, erasure.failed, erasure.mode, erasure.reason],
    [2, 1, 0, 'redact', 'asked for'],
  )
  assert.doesNotMatch(JSON.stringify(erasure), /åsa/i)
  const { source, quotes } = sourcePageIn(await acme.get(`/sources/${idOf('one')}`))
  assert.deepEqual(
    [source.title, source.description, source.wordCount],
    ['[erased]', '[erased]', 2],
  )
  assert.deepEqual(
    quotes.map(({ text, speaker, upVotes, replyingTo }) => [text, speaker, upVotes, replyingTo]),
    [
      ['[erased]', '[erased]', 2, undefined],
      ['not hers', 'Bob', undefined, 'one'],
    ],
  )
  assert.equal(sourcePageIn(await acme.get(`/sources/${idOf('two')}`)).source.wordCount, 4)
  const foreign = idOf('one', other)
  assert.equal(sourcePageIn(await globex.get(`/sources/${foreign}`)).source.title, 'Åsa asks')
  problemIn(await globex.get(`/erasures/${erasure.id}`), 404, 'operation_unknown')
  assert.equal((await erase({ speaker: 'Åsa' })).quotes, 0)
  // What is posted later is stored.
  const again = storedIn(await acme.post(thread('one')))
  assert.deepEqual([again.source.wordCount, again.quotes[0]?.speaker], [4, 'Åsa'])

  const removal = await erase({ speaker: 'Åsa', mode: 'remove' })
  assert.deepEqual([removal.threads, removal.quotes, removal.mode], [2, 1, 'remove'])
  const left = sourcePageIn(await acme.get(`/sources/${idOf('one')}`))
  assert.deepEqual(
    [left.source.title, left.source.description, left.source.wordCount],
    ['[erased]', '[erased]', 2],
  )
  assert.deepEqual(
    left.quotes.map(({ speaker, replyingTo }) => [speaker, replyingTo]),
    [['Bob', 'one']],
  )

  // A thread has marks of at most 10,000 removed quotes. More are redacted.
  const marks = Array.from({ length: 10_000 }, (_, at) => [`quote-${at}`, Date.now() * 1_000])
  const $set = { 'meta.deletion.ofQuotes': Object.fromEntries(marks) }
  await sluice.db.collection<{ _id: string }>('sources').updateOne({ _id: idOf('one') }, { $set })
  storedIn(await acme.post(thread('one')))
  const rest = await erase({ speaker: 'Åsa', mode: 'remove' })
  assert.deepEqual([rest.quotes, rest.failed], [1, 0])
  const { quotes: all } = sourcePageIn(await acme.get(`/sources/${idOf('one')}`))
  assert.deepEqual(all.map(({ speaker }) => speaker).sort(), ['Bob', '[erased]'])
})

test.concurrent('a title, a URL and the name of a channel go with the quote that they repeat or whose speaker they name', async () => {
  const { acme, idOf, erase } = await addTenants()
  const quotes = [
    { externalId: 'm1', text: 'Could you  help?\nIt is urgent.', speaker: 'Åsa' },
    { externalId: 'm2', text: 'Sure', speaker: 'Bob' },
  ]
  const titles = ['Could you help?', 'Could you…', 'Help desk']
  const post = (title: string, at: number) =>
    acme.post({ service: 'slack', externalId: `c/${at}`, title, quotes })
  const stored = async () => {
    const pages = titles.map((_, at) => acme.get(`/sources/${idOf(`c/${at}`)}`))
    return (await Promise.all(pages)).map((page) => sourcePageIn(page).source.title)
  }
  await Promise.all(titles.map(post))
  // As importers write them: an issue, a day of a chat, a chat that is named in its URL only.
  const fields = [
    { title: 'Cold oven', quotes: [{ externalId: 'i/3', text: 'Since six', speaker: 'Åsa' }] },
    { title: 'Zoe\u0301 Li, 2024-05-01', channelName: 'Zoe\u0301 Li' },
    { title: 'A thread', channelName: 'r/ovens', url: 'https://x.example/Zoé_Li/1' },
    { title: 'Adam', channelName: 'Adam', url: 'https://x.example/adam' },
    { title: 'Zoé Li, 2024-05-02', channelName: 'Zoe\u0301 Li' },
  ].map((one, at) => ({ service: 'slack', externalId: `c/i/${at + 3}`, quotes, ...one }))
  const said = { externalId: 'm3', text: 'Yes', speaker: 'Zoé Li' }
  // On the second day, only Bob writes.
  const threads = fields.map((one, at) => ({
    ...one,
    quotes: at === 4 ? quotes.slice(1) : [...one.quotes, said],
  }))
  const fieldsOf = async () => {
    const found = []
    for (const { externalId } of threads) {
      const { source } = sourcePageIn(await acme.get(`/sources/${idOf(externalId)}`))
      found.push([source.title, source.channelName, source.url])
    }
    return found
  }
  const gone = '[erased]'
  const left = [
    [gone, undefined, undefined],
    [gone, gone, undefined],
    [gone, 'r/ovens', gone],
    ['Adam', 'Adam', 'https://x.example/adam'],
    [gone, gone, undefined],
  ]
  await Promise.all(threads.map((one) => acme.post(one)))
  for (const speaker of ['Åsa', 'Zoé Li']) await erase({ speaker, suppress: true })
  assert.deepEqual([await stored(), await fieldsOf()], [[gone, gone, 'Help desk'], left])
  // A later part of a thread repeats its fields, and has no quote of the speaker.
  const later = threads.map((one) => ({ ...one, quotes: quotes.slice(1) }))
  const again = [...threads, ...later].map((one) => acme.post(one, { prefer: 'respond-async' }))
  for (const one of await Promise.all(again)) {
    const job = await acme.get(jobPathIn(one), { prefer: 'wait=30' })
    // No word of them that an id can have.
    assert.doesNotMatch(job.text, /Cold oven|Åsa|Zo(é|e\u0301)/i)
  }
  await Promise.all(titles.map(post))
  assert.deepEqual([await stored(), await fieldsOf()], [[gone, gone, 'Help desk'], left])
})

test.concurrent('names are equal in all Unicode forms, and no character of them is a pattern', async () => {
  const { acme, idOf, erase } = await addTenants()
  const names = ['Zoé', 'Zoe\u0301', '  Zoé\n', 'zoé', 'Zoe', '.*', 'A(da', '$ne', '^Z.+']
  for (const [at, speaker] of names.entries()) storedIn(await acme.post(thread(`t${at}`, speaker)))
  async function speakers() {
    const found = []
    for (const at of names.keys())
      found.push(sourcePageIn(await acme.get(`/sources/${idOf(`t${at}`)}`)).quotes[0]?.speaker)
    return found
  }
  assert.equal((await erase({ speaker: 'Zoé', service: 'email' })).quotes, 0)
  assert.equal((await erase({ speaker: 'Zoe\u0301', dryRun: true })).quotes, 3)
  assert.equal((await erase({ speaker: 'Zoe\u0301' })).quotes, 3)
  const gone = '[erased]'
  assert.deepEqual(await speakers(), [gone, gone, gone, ...names.slice(3)])
  for (const speaker of ['.*', 'A(da', '$ne', '^Z.+'])
    assert.equal((await erase({ speaker })).quotes, 1, speaker)
  assert.deepEqual(await speakers(), [gone, gone, gone, 'zoé', 'Zoe', gone, gone, gone, gone])
})

test.concurrent('`sluice erase` counts, erases and says how much; a key without the right may not', async () => {
  const { sluice, tenant, key, acme } = await addTenants()
  storedIn(await acme.post(thread('one')))
  const run = (...args: string[]) =>
    runSluice(
      { settings: { ...sluice.settings, SLUICE_API_KEY: key } },
      ...['erase', 'Åsa', '--url', sluice.url, ...args],
    )
  assert.deepEqual(
    (await run('--dry-run')).stdout,
    '1 message would be erased, 1 thread examined.\n',
  )
  const asked = await run()
  assert.deepEqual([asked.code, asked.stdout], [1, ''])
  assert.match(asked.stderr, /Nothing was erased\. Add --yes/)
  assert.deepEqual(
    (await run('--yes', '--suppress')).stdout,
    '1 message erased, 1 thread examined.\n',
  )
  const recent: Hit[] = JSON.parse((await operator.get('/admin/recent')).text).jobs
  const { outcomes } = recent.filter((job) => job.tenant === tenant).at(-1) ?? {}
  assert(outcomes && outcomes.updated > 0 && outcomes.deleted === undefined, 'the thread stays')
  assert.equal(storedIn(await acme.post(thread('one'))).quotes[0]?.outcome, 'suppressed')
  const poor = await createKey(sluice.db, { tenant, name: 'posts' })
  const caller = createCaller({ url: sluice.url, key: poor.key })
  problemIn(await caller.get('/erasures'), 403, 'deletes_forbidden')
})

test.concurrent('a thread with more quotes than one step reads is erased whole', async () => {
  const { sluice, acme, idOf, erase } = await addTenants()
  const quotes = Array.from({ length: 2_100 }, (_, at) => ({
    ...{ externalId: `q${at}`, text: 'a word', speaker: at % 20 === 0 ? 'Åsa' : 'Bob' },
  }))
  const source = { service: 'slack', title: 'A thread' }
  storedIn(await acme.post({ ...source, externalId: 'large', quotes }))
  storedIn(await acme.post(thread('small')))
  const erasure = await erase({ speaker: 'Åsa' })
  assert.deepEqual([erasure.threads, erasure.quotes, erasure.failed], [2, 106, 0])
  const sourceId = { $in: [idOf('large'), idOf('small')] }
  const left = sluice.db.collection('quotes').countDocuments({ sourceId, speaker: 'Åsa' })
  assert.equal(await left, 0)
  const large = await sluice.db
    .collection<SourceDocument>('sources')
    .findOne({ _id: idOf('large') })
  assert.deepEqual([large?.title, large?.wordCount, large?.quoteCount], ['A thread', 3_990, 2_100])
})

test.concurrent('no later post brings a suppressed speaker back, until the suppression is ended', async (t) => {
  const { sluice, acme, globex, idOf, erase } = await addTenants()
  /** No other test has this name and these words. */
  const ofUlf = (externalId: string, speaker = 'Ülf') =>
    thread(externalId, speaker, 'Ülf', 'his words')
  const threads = Array.from({ length: 20 }, (_, at) => ofUlf(`t${at}`))
  const postAll = () => Promise.all(threads.map((one) => acme.post(one)))
  const outcomes = async () =>
    new Set(
      (await postAll()).map((one) =>
        storedIn(one)
          .quotes.map(({ outcome }) => outcome)
          .join(),
      ),
    )
  // Both workers have read the list.
  assert.deepEqual(await outcomes(), new Set(['created,created']))
  const erasure = await erase({ speaker: 'Ülf', service: 'slack', suppress: true })
  assert.deepEqual(await outcomes(), new Set(['suppressed,unchanged']))
  const [again] = await postAll()
  const { source, quotes } = storedIn(again ?? assert.fail())
  assert.deepEqual(
    [source.title, source.description, source.wordCount, source.outcome, quotes[0]?.text],
    ['[erased]', '[erased]', 2, 'unchanged', '[erased]'],
  )

  // Another thread, whose answer is retained, and quotes without ids.
  const other = ofUlf('other', 'Ülf\u00a0')
  const nameless = [1, 2].map((count) => ({ text: `words ${count}`, speaker: 'Ülf' }))
  const asked = { ...other, quotes: [...other.quotes, ...nameless] }
  const accepted = await acme.post(asked, { prefer: 'respond-async' })
  const job = jobIn(await acme.get(jobPathIn(accepted), { prefer: 'wait=30' }))
  const page = sourcePageIn(await acme.get(`/sources/${idOf('other')}`))
  assert.deepEqual(
    job.result?.quotes.map(({ id, text, outcome }) => [id, text, outcome === 'suppressed']),
    page.quotes.map(({ id, text }) => [id, text, text === '[erased]']),
  )
  assert.equal(new Set(page.quotes.map(({ id }) => id)).size, 4)
  const ids = async () =>
    jobIn(await acme.get(jobPathIn(accepted))).result?.quotes.map(({ id }) => id)
  const before = await ids()
  await acme.send(`/sources/${idOf('other')}/quotes?externalId=absent`, { method: 'DELETE' })
  assert.deepEqual(await ids(), before)
  const line = JSON.stringify(ofUlf('imported'))
  const imported = await acme.postImport(line)
  assert.match(imported.text, /"quotes":\{"created":1,"updated":0,"unchanged":0,"suppressed":1\}/)

  // Redis and MongoDB have none of the erased words, and all words of other tenants and services.
  const { QUEUE = '', REDIS_URL = '' } = sluice.settings
  const redis = connectRetrying({ redisUrl: REDIS_URL, queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const words = ['Ülf', 'his words', 'words 1']
  assert.deepEqual(await keysWith(redis, queueKeys(QUEUE), words), [])
  for (const { name } of await sluice.db.listCollections().toArray()) {
    const text = JSON.stringify(await sluice.db.collection(name).find().toArray())
    assert(!words.some((word) => text.includes(word)), name)
  }
  assert.equal(storedIn(await globex.post(ofUlf('one'))).quotes[0]?.speaker, 'Ülf')
  assert.equal(storedIn(await acme.post({ ...ofUlf('x'), service: 'email' })).source.wordCount, 4)

  const path = '/suppressions'
  const list = await acme.get(path)
  assert.doesNotMatch(list.text, /ülf/i)
  const [{ createdAt: _, ...listed }] = JSON.parse(list.text).suppressions
  const { id: opened, speaker, service, by } = erasure
  const id = `${speaker}.slack`
  assert.deepEqual(listed, { id, speaker, service, by, erasure: opened })
  const end = (caller: typeof acme) => caller.send(`${path}/${id}`, { method: 'DELETE' })
  assert.match((await end(globex)).text, /"absent"/)
  assert.match((await end(acme)).text, /"ended"/)
  assert.match((await end(acme)).text, /"absent"/)
  assert.deepEqual(await outcomes(), new Set(['updated,unchanged']))
  assert.equal(sourcePageIn(await acme.get(`/sources/${idOf('t0')}`)).source.wordCount, 4)
})

test('posts that waited when the erasure was asked for are erased, too, and results of posts that a suppressed one replaced', async (t) => {
  const { tenant, acme, idOf, open } = await addTenants()
  const resume = () => operator.send('/admin/lanes/bulk:resume', { method: 'POST' })
  t.onTestFinished(async () => void (await resume()))
  /** Erases while a post waits, and calls `during` meanwhile. */
  async function eraseBehind(waiting: object, request: object, during = async () => {}) {
    await operator.send('/admin/lanes/bulk:pause', { method: 'POST' })
    acceptedIn(await acme.post(waiting, { prefer: 'respond-async' }))
    const { id } = await open(request)
    const state = async () => erasureIn(await acme.get(`/erasures/${id}`), 200)
    await until('the operation begins', async () => (await state()).state === 'active')
    await during()
    await resume()
    return until('it is completed', async () => {
      const erasure = await state()
      return erasure.state === 'completed' ? erasure : undefined
    })
  }
  const { id, ...done } = await eraseBehind(thread('one'), { speaker: 'Åsa' })
  assert.deepEqual([done.threads, done.quotes], [1, 1])

  const posted = await acme.post(thread('two'), { prefer: 'respond-async' })
  const result = async () => (await acme.get(jobPathIn(posted), { prefer: 'wait=30' })).text
  assert.match(await result(), /"completed".*two words/)
  const corrected = await acme.post(thread('four'), { prefer: 'respond-async' })
  const resultBefore = async () =>
    (await acme.get(jobPathIn(corrected), { prefer: 'wait=30' })).text
  assert.match(await resultBefore(), /"completed".*two words/)
  // This request has no speaker, but its answer has the stored one.
  const { title, description, ...rest } = thread('four')
  const partly = { ...rest, title, quotes: [{ externalId: 'four', text: 'two words' }] }
  const repeat = () => acme.post(partly, { 'idempotency-key': 'once' })
  const partial = await acme.post(partly, { prefer: 'respond-async' })
  const partialResult = async () => (await acme.get(jobPathIn(partial), { prefer: 'wait=30' })).text
  assert.match((await repeat()).text + (await partialResult()), /"speaker":"Åsa".*"speaker":"Åsa"/)
  storedIn(await acme.post(thread('four', 'Carl')))
  await eraseBehind(thread('three', 'Bob'), { speaker: 'Åsa', suppress: true }, async () => {
    assert.equal(storedIn(await acme.post(thread('two'))).quotes[0]?.outcome, 'suppressed')
  })
  assert.match(await result(), /"completed".*not hers/)
  assert.doesNotMatch(await result(), /Åsa|two words/)
  assert.match(await resultBefore(), /"completed".*not hers/)
  assert.doesNotMatch(await resultBefore(), /Åsa|two words/)
  assert.doesNotMatch((await repeat()).text + (await partialResult()), /"speaker":"Åsa"/)
  assert.equal(sourcePageIn(await acme.get(`/sources/${idOf('four')}`)).source.wordCount, 4)
  problemIn(await operator.get('/erasures'), 400, 'request_invalid')
  assert.match((await operator.get(`/erasures?tenant=${tenant}`)).text, new RegExp(id))
  assert.match((await acme.get('/erasures')).text, new RegExp(id))
})
