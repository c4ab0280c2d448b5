import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKey } from '@sluice/credentials/keys'
import {
  createBatchStore,
  mongoCommands,
  type QuoteDocument,
  type SourceDocument,
} from '@sluice/store'
import { requiredUrl, type StartedProcess } from '@sluice/test-support'
import type { Db } from 'mongodb'
import { afterAll, beforeAll, test } from 'vitest'
import { createCaller } from '../e2e/support/caller.ts'
import { storedIn } from '../e2e/support/read-reply.ts'
import { assertConsistent } from '../support/assert-stored.ts'
import { openOperator } from '../support/open-operator.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { runSluice } from '../support/run-sluice.ts'
import { prepareSluice, startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

/** Of each server. */
const KILLS = 2
const settings = { OPERATION_JOBS_PER_SECOND: '1000' }

let mongodb: PrivateServer
let redis: PrivateServer
beforeAll(async () => {
  mongodb = await openPrivateServer('MongoDB', requiredUrl('REDIS_URL'))
  redis = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
})
afterAll(async () => void (await Promise.all([mongodb.end(), redis.end()])))

const inTurn = () => Array.from({ length: KILLS }, () => [mongodb, redis]).flat()
const urls = () => ({ mongodbUrl: mongodb.url, redisUrl: redis.url })

const thread = (externalId: string) => ({
  ...{ service: 'slack' as const, externalId, title: `${externalId} of Ada` },
  quotes: ['Ada', 'Bob', 'Ada'].map((speaker, at) => {
    return { externalId: `${externalId}-${at}`, text: 'two words', speaker }
  }),
})

async function documentsOf(db: Db): Promise<[SourceDocument[], QuoteDocument[]]> {
  return [
    await db.collection<SourceDocument>('sources').find().toArray(),
    await db.collection<QuoteDocument>('quotes').find().toArray(),
  ]
}

const NOTICES: readonly unknown[] = ['store.lost', 'operation.interrupted', 'redis.error']

/**
 * Kills both servers in turn while `count` goes from 0 to `all`, and starts each again once one of
 * the processes has noticed.
 */
async function killWhile(
  processes: readonly StartedProcess[],
  count: () => Promise<number>,
  all: number,
): Promise<void> {
  const noticed = () =>
    processes.flatMap(({ log }) => log).filter(({ msg }) => NOTICES.includes(msg)).length
  for (const [kill, server] of inTurn().entries()) {
    const least = (all * kill) / (2 * KILLS)
    const at = await until(`more than ${least} of ${all}`, async () => {
      const found = await count()
      return found > least ? found : undefined
    })
    assert(at < all, 'the server is killed before the end')
    const before = noticed()
    await server.kill()
    await until('a process notices it', () => noticed() > before)
    await server.startAgain()
  }
}

test.for(['redact', 'remove'] as const)(
  'an erasure goes on whenever MongoDB or Redis is killed, erases each quote and counts it once: %s',
  { timeout: 240_000 },
  async (mode, t) => {
    const THREADS = 400
    const sluice = await startSluice(t, { workers: 2, ...urls(), settings })
    const { db } = sluice
    const acme = createCaller(sluice)
    const lines = Array.from({ length: THREADS }, (_, at) => JSON.stringify(thread(`t${at}`)))
    assert.equal((await acme.postImport(lines.join('\n'))).status, 200)
    const headers = { 'content-type': 'application/json' }
    const body = { speaker: 'Ada', mode }
    const opened = await acme.send('/erasures', { method: 'POST', headers, body })
    assert.equal(opened.status, 202, opened.text)
    const left = () => db.collection('quotes').countDocuments({ speaker: 'Ada' })
    await killWhile(
      [sluice.api, ...sluice.workers],
      async () => THREADS * 2 - (await left()),
      THREADS * 2,
    )
    const done = await until('the erasure is completed', async () => {
      const { status, text } = await acme.get(`/erasures/${JSON.parse(opened.text).id}`)
      const erasure = status === 200 ? JSON.parse(text) : {}
      return erasure.state === 'completed' ? erasure : undefined
    })
    assert.deepEqual([done.threads, done.quotes, done.failed], [THREADS, THREADS * 2, 0])
    assert.equal(await left(), 0)
    const [sources, quotes] = await documentsOf(db)
    assertConsistent(sources, quotes)
    const kept = { redact: 3, remove: 1 }[mode]
    assert.deepEqual(
      [
        new Set(sources.map((one) => [one.title, one.quoteCount, one.wordCount].join())),
        quotes.length,
      ],
      [new Set([`[erased],${kept},2`]), THREADS * kept],
    )
  },
)

test('retention goes on whenever MongoDB or Redis is killed, and deletes each due thread once', {
  timeout: 240_000,
}, async (t) => {
  const DUE = 40
  const prepared = await prepareSluice(t, {
    ...urls(),
    settings: { ...settings, RETAIN_DAYS: '30' },
  })
  const { db } = prepared
  const store = createBatchStore(mongoCommands(db))
  const names = [...Array.from({ length: DUE }, (_, at) => `due${at}`), 'young']
  const requests = names.map((name, at) => {
    const stamp = (Date.now() - (name === 'young' ? 1 : 40) * 86_400_000) * 1_000 + at
    const { quotes, ...source } = thread(name)
    return { id: name, tenant: 'acme', stamp, redelivered: false, thread: { source, quotes } }
  })
  await store.store(requests)
  await store.settle()
  const left = () => db.collection('sources').countDocuments({ tenant: 'acme' })
  const [{ api, url }, ...workers] = await Promise.all([
    prepared.startApi(),
    prepared.startWorker(),
    prepared.startWorker(),
  ])
  await killWhile([api, ...workers], async () => names.length - (await left()), DUE)
  const { readVerdict } = await openOperator({ ...prepared, url })
  const said = new RegExp(
    `^Retention: ${DUE} of ${DUE} threads that were due \\d+ (s|min) ago are deleted`,
  )
  await until('the verdict says it', async () =>
    (await readVerdict()).some((text) => said.test(text)),
  )
  const [sources, quotes] = await documentsOf(db)
  assertConsistent(sources, quotes)
  assert.deepEqual(
    [sources.flatMap(({ externalId }) => externalId ?? []), quotes.length],
    [['young'], 3],
  )
})

test('an export goes on whenever MongoDB or Redis is killed, and its file has each message once', {
  timeout: 240_000,
}, async (t) => {
  const [THREADS, QUOTES, CHARACTERS] = [20, 10, 80_000]
  const sluice = await startSluice(t, urls())
  const { db, url } = sluice
  const acme = createCaller(sluice)
  for (let at = 0; at < THREADS; at += 1) {
    const quotes = Array.from({ length: QUOTES }, (_, one) => {
      return { externalId: `${at}-${one}`, text: 'x'.repeat(CHARACTERS) }
    })
    storedIn(await acme.post({ ...thread(`t${at}`), quotes }))
  }

  // Of this page, its reader has the beginning.
  const page = await fetch(`${url}/sources:export`, { headers: { 'x-api-key': sluice.key } })
  const reader = page.body?.getReader() ?? assert.fail()
  assert(!(await reader.read()).done)
  await mongodb.kill()
  await assert.rejects(async () => {
    while (!(await reader.read()).done);
  }, 'a page that breaks off does not end as a whole one')
  await mongodb.startAgain()

  // A key whose quota is used up gets one message in each page.
  const limits = { quotesPerSecond: 1, burstQuotes: 1 }
  const { key } = await createKey(db, { tenant: 'acme', name: 'used up', limits })
  storedIn(await createCaller({ url, key }).post({ ...thread('last'), quotes: [] }))
  const folder = await mkdtemp(join(tmpdir(), 'sluice-'))
  t.onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'export.ndjson')
  const saved = async (): Promise<number> => {
    const text = await readFile(`${file}.sluice-checkpoint`, 'utf8').catch(() => '{}')
    return JSON.parse(text).progress?.lines ?? 0
  }
  const by = { settings: { ...sluice.settings, SLUICE_API_KEY: key } }
  const exporting = runSluice(by, 'export', file, '--url', url)
  for (const server of inTurn()) {
    const before = await saved()
    await until('another page is saved', async () => (await saved()) > before)
    await server.kill()
    await assert.rejects(readFile(file), 'the export is complete only at its end')
    await server.startAgain()
  }
  const { code, stderr } = await exporting
  assert.equal(code, 0, stderr)
  const lines = (await readFile(file, 'utf8')).split('\n').slice(0, -1)
  const found = lines.flatMap((line) => JSON.parse(line).quotes)
  const names = found.map(({ externalId }) => externalId)
  assert.deepEqual([names.length, new Set(names).size], [THREADS * QUOTES, THREADS * QUOTES])
  assert(found.every(({ text }) => text.length === CHARACTERS))
})
