import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createKey } from '@sluice/credentials/keys'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { keysWith } from '@sluice/queue/test-support'
import { createBatchStore, mongoCommands } from '@sluice/store'
import { sourceIdOf } from '@sluice/store/ids'
import { requiredUrl, runtimeEnv } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { createCaller } from '../e2e/support/caller.ts'
import { acceptedIn, storedIn } from '../e2e/support/read-reply.ts'
import { openOperator } from '../support/open-operator.ts'
import { openQueue } from '../support/open-queue.ts'
import { openPrivateServer } from '../support/private-server.ts'
import { runSluice } from '../support/run-sluice.ts'
import { startSluice, type TestSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

const SLUICE = fileURLToPath(new URL('../../sluice', import.meta.url))
const ASYNC = { prefer: 'respond-async' }
/** Is in every text that is deleted. */
const GONE = 'w7b1e0d3c'
/** No random id has this. */
const ZOE = 'Zoé'

/** Starts a Sluice on servers of its own. */
async function start(t: TestContext) {
  const [mongodb, redis] = await Promise.all([
    openPrivateServer('MongoDB', requiredUrl('REDIS_URL')),
    openPrivateServer('Redis', requiredUrl('MONGODB_URL')),
  ])
  t.onTestFinished(async () => void (await Promise.all([mongodb.end(), redis.end()])))
  const sluice = await startSluice(t, { mongodbUrl: mongodb.url, redisUrl: redis.url })
  const { QUEUE = '', REDIS_URL = '' } = sluice.settings
  const client = connectRetrying({ redisUrl: REDIS_URL, queue: '' }, () => {})
  t.onTestFinished(() => client.disconnect())
  /** Returns the collections and the keys of Redis that have a word. */
  async function placesOf(word: string): Promise<string[]> {
    const collections = await sluice.db.listCollections().toArray()
    const found = collections.map(async ({ name }) => {
      const text = JSON.stringify(await sluice.db.collection(name).find().toArray())
      return text.includes(word) ? [name] : []
    })
    const keys = await keysWith(client, queueKeys(QUEUE), [word])
    return [...(await Promise.all(found)).flat(), ...keys]
  }
  /** Runs doctor, once the processes of a backup count as dead. Returns what it did. */
  async function afterRestore(input?: string): Promise<string[]> {
    const from = input === undefined ? [] : ['--from', '-']
    const stdout = await until('doctor', async () => {
      const ran = await runSluice({ ...sluice, input }, 'doctor', '--after-restore', ...from)
      assert.doesNotMatch(ran.stderr, /^error: (?!Nothing was removed)/m)
      return ran.stdout.startsWith('Removed: ') ? ran.stdout : undefined
    })
    assert.match(stdout, /^Wrong: 0$/m)
    return stdout.split('\n').filter((line) => /^(Applied|Removed what|Suppressions)/.test(line))
  }
  return { mongodb, redis, client, sluice, placesOf, afterRestore }
}

async function stop(processes: readonly TestSluice['api'][]): Promise<void> {
  for (const process of processes) process.signal('SIGTERM')
  for (const process of processes) assert.equal((await process.ended).code, 0)
}

const thread = (externalId: string, texts: Record<string, string>, speaker = 'Bob') => ({
  ...{ service: 'slack', externalId, title: Object.values(texts).at(-1) },
  quotes: Object.entries(texts).map(([id, text]) => ({ externalId: id, text, speaker })),
})
const OLD = `old ${GONE}`

/** Stores a thread that was posted long ago. */
async function storeOld(db: TestSluice['db']): Promise<void> {
  const source = { service: 'reddit', externalId: 'old', title: OLD } as const
  const store = createBatchStore(mongoCommands(db))
  const [stamp, redelivered] = [(Date.now() - 40 * 86_400_000) * 1_000, false]
  const thread = { source, quotes: [{ externalId: 'a', text: OLD }] }
  await store.store([{ id: 'old', tenant: 'acme', stamp, redelivered, thread }])
  await store.settle()
}

const idOf = (externalId: string) => sourceIdOf('acme', { service: 'slack', externalId })

test('what was deleted is gone again after Redis, MongoDB or both were restored from before', {
  timeout: 240_000,
}, async (t) => {
  const { mongodb, redis, client, sluice, placesOf, afterRestore } = await start(t)
  const { db } = sluice
  const acme = createCaller(sluice)
  const { key: operatorKey } = await openOperator(sluice)
  const operator = createCaller({ url: sluice.url, key: operatorKey })
  const view = openQueue(t, sluice.settings)
  const pause = (act: string, by = operator) =>
    by.send(`/admin/lanes/bulk:${act}`, { method: 'POST' })

  const globexKey = await createKey(db, { tenant: 'globex', name: 'test' })
  const globex = createCaller({ url: sluice.url, key: globexKey.key })

  // Stored, and waiting.
  const speaker = `Ada ${GONE}`
  const threads = [
    thread('whole', { a: `one ${GONE}`, b: `two ${GONE}` }),
    thread('part', { b: `three ${GONE}`, a: 'stays' }),
    { ...thread('hers', { a: `four ${GONE}`, b: 'stays' }, speaker), title: 'stays' },
  ]
  threads[2]?.quotes.push({ externalId: 'c', text: 'stays', speaker: 'Bob' })
  const theirs = thread('theirs', { a: `five ${GONE}`, b: `six ${GONE}` })
  /** Erases a speaker, and waits for it. */
  async function erase(who: string) {
    const opened = await openErasure({ speaker: who, suppress: true })
    await until('the erasure', () => isErased(opened.id))
    return opened
  }
  async function openErasure(body: object): Promise<{ id: string; speaker: string }> {
    const { status, text } = await acme.send('/erasures', {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body,
    })
    assert.equal(status, 202, text)
    return JSON.parse(text)
  }
  const isErased = async (id: string, by = acme) =>
    /"state":"completed"/.test((await by.get(`/erasures/${id}`)).text)
  for (const one of threads) storedIn(await acme.post(one))
  const ended = await erase('Eve')
  storedIn(await globex.post(theirs))
  const retained = await runSluice(sluice, 'tenants', 'retain', 'globex', '365d')
  assert.equal(retained.code, 0, retained.stderr)
  const rules = (tenant: string) => db.collection('layout').countDocuments({ tenant })
  await storeOld(db)
  await pause('pause')
  for (const one of threads) acceptedIn(await acme.post(one, ASYNC))
  acceptedIn(await globex.post(theirs, ASYNC))
  // Waits for the posts, so the backup of Redis has it open.
  const { id: open } = await openErasure({ speaker: ZOE })
  await Promise.all([mongodb.keepCopy(), redis.keepCopy()])
  await until('an API and a worker that go on', async () => {
    return (await acme.post(thread('other', { a: 'stays' }))).status === 200
  })
  await pause('resume')
  await view.drained()

  await until('the erasure', () => isErased(open))
  const remove = async (path: string) => {
    const { status, text } = await acme.send(path, { method: 'DELETE' })
    assert.equal(status, 200, text)
  }
  await remove('/sources?service=slack&externalId=whole')
  await remove(`/sources/${idOf('part')}/quotes?externalId=b`)
  await erase(speaker)
  await acme.send(`/suppressions/${ended.speaker}`, { method: 'DELETE' })
  for (const args of [
    ['retain', 'acme', '30d', '--service', 'reddit', '--yes'],
    ['delete', 'globex', '--yes'],
  ])
    assert.equal((await runSluice(sluice, 'tenants', ...args)).code, 0)
  // Looks for due threads now, and not tomorrow.
  const { base } = queueKeys(sluice.settings.QUEUE ?? '')
  await client.del(`${base}retention`)
  await until('the retention', async () => (await placesOf(OLD)).length === 0)
  storedIn(await acme.post(thread('whole', { c: 'later' })))
  storedIn(await acme.post(thread('zoe', { a: 'later' }, ZOE)))
  assert.deepEqual(await placesOf(GONE), [])
  // Operations that end write their records twice.
  assert.equal(await db.collection('deletions').countDocuments(), 9)
  assert.equal(await client.xlen(`${base}deletions`), 14)
  const folder = await mkdtemp(join(tmpdir(), 'sluice-'))
  t.onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'records.ndjson')
  assert.match((await runSluice(sluice, 'erasures', 'export', file)).stdout, /^Wrote 9 records /)
  const pipe = `${file}.pipe`
  execFileSync('mkfifo', [pipe])
  const piping = runSluice(sluice, 'erasures', 'export', pipe)
  assert.equal(await readFile(pipe, 'utf8'), await readFile(file, 'utf8'))
  assert.equal((await piping).code, 0)
  const exported = await runSluice(sluice, 'erasures', 'export', '-')
  assert.equal(exported.stdout, await readFile(file, 'utf8'))
  assert.match(exported.stderr, /^Wrote 9 records to -\.$/m)
  const cut = await promisify(execFile)('sh', ['-c', `"${SLUICE}" erasures export - | :`], {
    env: { ...runtimeEnv(), ...sluice.settings },
  })
  assert.match(cut.stderr, /^error: -: write EPIPE\./m)
  await stop([sluice.api, ...sluice.workers])
  const totals = async () => {
    const found = await db.collection('sources').find({ tenant: 'acme' }).toArray()
    return Object.fromEntries(found.map((one) => [one.externalId, one.quoteCount]))
  }
  const applied = (suppressions: number, ...counts: string[]) => [
    `Suppressions opened or ended again: ${suppressions}.`,
    ...['2 deletions', '3 erasures', '1 run of retention', '1 deleted tenant'].map(
      (what, at) => `Applied again: ${what}, which removed ${counts[at]}.`,
    ),
  ]
  const NOTHING = applied(0, ...Array(4).fill('0 threads and 0 messages'))
  const written = (suppressions: number) =>
    applied(
      ...([suppressions, '1 thread and 3 messages', '0 threads and 2 messages'] as const),
      ...['1 thread and 1 message', '1 thread and 2 messages'],
    )
  const jobs = (count: number) =>
    `Removed what is deleted from ${count === 1 ? '1 job' : `${count} jobs`} of Redis.`

  await redis.restoreCopy()
  assert.match((await placesOf(GONE)).join(), /bulk/)
  assert.deepEqual(await afterRestore(), [...NOTHING, jobs(4)])
  assert.deepEqual(await placesOf(GONE), [])
  assert.deepEqual(await totals(), { hers: 3, other: 1, part: 1, whole: 1, zoe: 1 })
  assert.deepEqual(await placesOf(ZOE), ['quotes'])
  assert.deepEqual(await afterRestore(), [...NOTHING, jobs(0)])

  // Posted after the deletion. The backup of MongoDB does not have it, but it waits.
  const { api, url } = await sluice.startApi()
  await untilKeyIsKnown(url, sluice.key)
  acceptedIn(
    await createCaller({ url, key: sluice.key }).post(thread('whole', { c: 'later' }), ASYNC),
  )
  await stop([api])
  await mongodb.restoreCopy()
  assert.match((await placesOf(GONE)).join(), /sources.*quotes|quotes.*sources/)
  assert.equal(await rules('globex'), 1)
  assert.deepEqual(await afterRestore(), [...written(2), jobs(0)])
  assert.deepEqual(await placesOf(GONE), [])
  assert.match((await placesOf('later')).join(), /bulk/)
  assert.deepEqual(await totals(), { hers: 3, part: 1 })
  assert.ok((await db.collection('keys').findOne({ tenant: 'globex' }))?.revokedAt)
  assert.equal(await rules('globex'), 0)
  assert.deepEqual(await afterRestore(), [...NOTHING, jobs(0)])

  await Promise.all([mongodb.restoreCopy(), redis.restoreCopy()])
  // As in a backup from before the first erasure.
  await db.collection('layout').deleteOne(Object({ _id: 'speakers' }))
  await db.collection('suppressions').drop()
  assert.deepEqual(await afterRestore(exported.stdout), [...written(1), jobs(4)])
  const refusal = async (text: string) => {
    await writeFile(`${file}.wrong`, text)
    const from = ['--after-restore', '--from', `${file}.wrong`]
    const { code, stderr } = await runSluice(sluice, 'doctor', ...from)
    assert.equal(code, 2)
    return stderr
  }
  assert.match(await refusal(exported.stdout.replace(/"store":"/, '$&x')), / is of the store x/)
  assert.match(await refusal(exported.stdout.replace(/.+\n$/, '')), / has only 8 of 9 records\.$/m)
  const unwritten = await runSluice(sluice, 'erasures', 'export', join(file, 'no'))
  assert.match(unwritten.stderr, /^error: \/.*: ENOTDIR: /m)
  assert.deepEqual(await placesOf(GONE), [])
  assert.deepEqual(await afterRestore(), [...NOTHING, jobs(0)])
  const [again, worker] = await Promise.all([sluice.startApi(), sluice.startWorker()])
  await untilKeyIsKnown(again.url, operatorKey)
  const caller = createCaller({ url: again.url, key: sluice.key })
  assert.ok(await isErased(open, caller), 'the erasure does not go on')
  await pause('resume', createCaller({ url: again.url, key: operatorKey }))
  await view.drained()
  const suppressed = thread('hers', { b: `again ${GONE}` }, speaker)
  storedIn(await caller.post({ ...suppressed, title: 'stays' }))
  assert.deepEqual(await placesOf(GONE), [])
  assert.deepEqual(await totals(), { hers: 3, part: 1 })
  const speakers = await db.collection('suppressions').distinct('speaker')
  assert.equal(speakers.length, 1)
  assert.notEqual(speakers[0], ended.speaker)
  await stop([again.api, worker])

  // A Redis that lost its data, and a record that is old.
  await client.del(`${base}deletions`)
  const old = { _id: 'old', kind: 'tenant', tenant: 'initech', stamp: 1 }
  await db.collection('deletions').insertOne(Object(old))
  const { stdout } = await runSluice(sluice, 'doctor', '--repair')
  assert.match(stdout, /^Marks and records of old deletions removed: 1$/m)
  assert.equal(await db.collection('deletions').countDocuments(), 9)
  assert.equal(await client.xlen(`${base}deletions`), 9)
})
