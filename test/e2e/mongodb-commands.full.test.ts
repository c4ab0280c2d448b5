// What Sluice's processes send to MongoDB: each command goes to the shards of its threads, walks no
// collection, and needs no more rights than docs/operate/mongodb.md gives.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { runInNewContext } from 'node:vm'
import { createKey } from '@sluice/credentials/keys'
import type { SourceDocument } from '@sluice/store'
import { sourceIdOf } from '@sluice/store/ids'
import { beforeSuite, startProcess } from '@sluice/test-support'
import { type Db, type Document, ObjectId } from 'mongodb'
import { describe, test } from 'vitest'
import { recordCommands } from '../support/record-commands.ts'
import { runSluice } from '../support/run-sluice.ts'
import { prepareSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { createCaller } from './support/caller.ts'
import { sendToEveryRoute } from './support/every-route.ts'
import { sourcePageIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const PROCESSES = ['sluiceApi', 'sluiceWorker', 'sluiceDashboard', 'sluiceOperator'] as const
const SHARD_KEYS: Readonly<Record<string, string>> = {
  sources: '_id',
  quotes: 'sourceId',
  writers: '_id',
}

describe('the commands that the processes send to MongoDB', () => {
  const recorded = Object.fromEntries(PROCESSES.map((process) => [process, recordCommands()]))
  const commandsOf = (process: string) => recorded[process]?.commands ?? []
  let db: Db

  beforeSuite(async (t) => {
    const sluice = await prepareSluice(t, { settings: { LIST_SOURCES: 'on' } })
    db = sluice.db
    const urls = await Promise.all(
      PROCESSES.map((process) =>
        openTcpProxy(t, sluice.settings.MONGODB_URL ?? '', recorded[process]?.gate),
      ),
    )
    const [forApi, forWorker, forDashboard, forOperator] = urls.map(({ url }) => ({
      MONGODB_URL: url,
    }))
    const [{ api, url }, worker] = await Promise.all([
      sluice.startApi(forApi),
      sluice.startWorker(forWorker),
    ])
    const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', {
      ...sluice.settings,
      ...forDashboard,
    })
    const { address } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')

    const run = async (...args: string[]) => {
      const { code, stderr } = await runSluice(
        { settings: { ...sluice.settings, ...forOperator } },
        ...args,
      )
      assert.equal(code, 0, stderr)
    }
    await run('keys', 'create', '--tenant', 'acme', '--name', 'importer')
    await run('keys', 'list')
    await run('keys', 'revoke', 'importer')
    await run('tenants', 'list')

    // Threads that are new, known, changed, longer and merged, alone and in imports.
    await untilKeyIsKnown(url, sluice.key)
    const importer = createCaller({ url, key: sluice.key })
    const quotes = [{ externalId: 'q1', text: 'one' }, { text: 'no id' }]
    const thread = someThread({ externalId: 't1', quotes })
    const id = sourceIdOf('acme', { service: 'slack', externalId: 't1' })
    storedIn(await importer.post(thread))
    storedIn(await importer.post(thread))
    for (const text of ['two', 'three'])
      storedIn(await importer.post({ ...thread, quotes: [{ externalId: 'q1', text }] }))
    storedIn(
      await importer.post({
        ...thread,
        quotes: [{ externalId: 'q1', text: 'three' }, { text: 'more' }],
      }),
    )
    for (const _ of [1, 2])
      await importer.postImport(
        ['t2', 't3', 't4']
          .map((externalId) => JSON.stringify({ ...thread, externalId }))
          .join('\n'),
      )
    const { next } = sourcePageIn(await importer.get(`/sources/${id}?limit=1`))
    sourcePageIn(await importer.get(`/sources/${id}?limit=1&after=${next}`))
    assert.equal((await importer.get('/sources?service=slack')).status, 200)
    await importer.send('/sources?service=slack&externalId=t4', { method: 'DELETE' })

    // A source with the token of a writer that is gone, which the next writer sums, and one with
    // wrong totals.
    const sources = db.collection<SourceDocument>('sources')
    const gone = { writer: 'gone', batch: 1, request: 'lost', since: new Date(0) }
    await sources.updateOne({ _id: id }, { $set: { 'meta.tokens': [gone] } })
    storedIn(await importer.post({ ...thread, quotes: [{ text: 'even more' }] }))
    await sources.updateOne({ externalId: 't2' }, { $set: { quoteCount: 9 } })
    await leaveDeleted(db, 't3')
    await run('doctor', '--repair')
    await run('tenants', 'retain', 'acme', '365d')
    await run('tenants', 'delete', 'nobody', '--yes')

    const { key } = await createKey(db, { role: 'operator', name: 'on call' })
    await untilKeyIsKnown(url, key)
    await sendToEveryRoute({ importer, operator: createCaller({ url, key }) }, id)
    const origin = `http://127.0.0.1:${Object(address).port}`
    const form = {
      method: 'POST',
      headers: { origin },
      body: new URLSearchParams({ key }),
      redirect: 'manual',
    } as const
    const login = await fetch(`${origin}/login`, form)
    const [cookie = ''] = login.headers.getSetCookie().map((set) => set.split(';')[0] ?? '')
    for (const path of ['/', '/find?q=t1', '/thread?tenant=acme&service=slack&externalId=t1'])
      assert.equal((await fetch(origin + path, { headers: { cookie } })).url, origin + path)
    await sources.updateOne({ _id: id }, { $set: { 'meta.tokens': [gone] } })
    const page = await fetch(`${origin}/thread?tenant=acme&service=slack&externalId=t1`, {
      headers: { cookie },
    })
    assert.match(await page.text(), /is stored in part/)
    // At their end, processes write what they would have written later.
    for (const process of [worker, api, dashboard]) {
      process.signal('SIGTERM')
      await process.ended
    }
    // A restored database may lack records and suppressions, and may be probed first by doctor.
    for (const name of ['deletions', 'suppressions']) await db.collection(name).drop()
    await db.collection<{ _id: string }>('writers').deleteOne({ _id: 'probe' })
    await run('doctor', '--after-restore', '--repair')
  })

  test('name the shard key or a range of it, but for walks, lists and look-ups', () => {
    const scattered = PROCESSES.flatMap((process) => commandsOf(process).flatMap(scatteredIn))
    assert.deepEqual([...new Set(scattered)].sort(), [
      'aggregate sources by _id',
      'find sources by _id',
      'find sources by _id,meta.stamp,tenant', // the walk of a deleted tenant, or of an erasure
      'find sources by meta.listKey',
      'find sources by meta.listKey,service',
      'update writers by _id', // the probe
    ])
    const seen = new Set(PROCESSES.flatMap((process) => commandsOf(process).map(nameOf)))
    for (const kind of [
      'find sources',
      'find quotes',
      'find writers',
      'update sources',
      'update quotes',
      'update writers',
      'aggregate quotes',
    ])
      assert(seen.has(kind), kind)
  })

  test('walk no collection, but for lists, exports and erasures', async () => {
    const names = ['sources', 'quotes']
    for (const name of names) {
      // No command asks for these ids, so only a walk of the collection reads the documents.
      const others = Array.from({ length: 4_000 }, (_, at) => ({
        _id: `~${at}`,
        sourceId: `~${at}`,
      }))
      await db.collection<{ _id: string }>(name).insertMany(others)
    }
    const ofThreads = new Map<string, [collection: string, filter: Document]>()
    for (const command of ['sluiceApi', 'sluiceWorker', 'sluiceDashboard'].flatMap(commandsOf))
      for (const filter of filtersOf(command))
        if (
          names.includes(collectionOf(command)) &&
          !('meta.listKey' in filter) &&
          !shapeOf(filter).startsWith('{"_id":{"$gt":""') &&
          !takesAny(command)
        )
          ofThreads.set(`${nameOf(command)} by ${shapeOf(filter)}`, [collectionOf(command), filter])
    for (const kind of ['find', 'aggregate'])
      assert(
        ofThreads.has(`${kind} quotes by {"sourceId":{"$in":[]},"_id":{"$gte":"","$lt":""}}`),
        kind,
      )
    const walks = await openWalks(db)
    for (const [shape, query] of ofThreads) assert.equal(await walks(...query), false, shape)
  })

  test('need the rights that docs/operate/mongodb.md gives, and all of them', async () => {
    const granted = await documentedRights()
    for (const process of PROCESSES) {
      const needed = new Set(commandsOf(process).flatMap(rightsFor))
      // Of a server that would walk the quotes for a range. MongoDB does not.
      for (const action of ['createIndex', 'listIndexes']) needed.delete(`quotes ${action}`)
      assert.deepEqual([...needed].sort(), granted[process], process)
    }
  })
})

/**
 * Leaves what a repair removes: an old tombstone, and a source whose deletion has left one quote as
 * a whole and one in part.
 */
async function leaveDeleted(db: Db, externalId: string): Promise<void> {
  const [sources, quotes] = [db.collection<Document>('sources'), db.collection<Document>('quotes')]
  const source = await sources.findOne({ externalId })
  const [whole = assert.fail(), part = assert.fail()] = await quotes
    .find({ sourceId: source?._id })
    .toArray()
  const stamp = Number.parseInt(whole.position, 10)
  const deletion = { stamp, tenant: 'acme', request: 'lost' }
  for (const [quote, of] of [
    [whole, stamp],
    [part, stamp + 1],
  ] as const)
    await quotes.updateOne(
      { _id: quote._id },
      { $set: { 'meta.stamp': of }, $unset: { 'meta.stamps': 1, 'meta.cover': 1 } },
    )
  await sources.updateOne(
    { externalId },
    { $set: { quoteCount: 9, 'meta.deletion': deletion }, $unset: { 'meta.cover': 1 } },
  )
  const meta = { version: new ObjectId(), deletion: { ...deletion, stamp: 1 } }
  await sources.insertOne(Object({ _id: 'x'.repeat(24), wordCount: 0, quoteCount: 0, meta }))
}

/** `COMMAND COLLECTION`. */
function nameOf(command: Document): string {
  const [name = ''] = Object.keys(command)
  return `${name} ${command[name]}`
}

function collectionOf({ update, aggregate, find, delete: removed }: Document): string {
  return update ?? aggregate ?? find ?? removed
}

function filtersOf(command: Document): Document[] {
  if (collectionOf(command) === undefined) return []
  return (
    (command.updates ?? command.deletes)?.map(({ q }: Document) => q) ?? [
      command.filter ?? command.pipeline[0].$match ?? {},
    ]
  )
}

/** Whether a command reads the first document that the server finds. */
function takesAny({ find, filter, limit }: Document): boolean {
  return find !== undefined && limit === 1 && Object.keys(filter ?? {}).length === 0
}

/** A filter without its values. */
function shapeOf(filter: Document): string {
  return JSON.stringify(filter, (_, value) =>
    Array.isArray(value) ? [] : typeof value === 'object' ? value : '',
  )
}

/** Describes each filter of a command that names no shard. */
function scatteredIn(command: Document): string[] {
  const key = SHARD_KEYS[collectionOf(command)]
  if (key === undefined) return []
  const isNamed = (value: unknown) =>
    typeof value === 'string' || Array.isArray(Object(value).$in) || '$lte' in Object(value)
  return filtersOf(command)
    .filter((filter) => !isNamed(filter[key]))
    .map((filter) => `${nameOf(command)} by ${Object.keys(filter).sort()}`)
}

/**
 * Makes a function that returns whether a query walks its collection, by the server's plan.
 * SecantusDB names a walk for each filter of two fields; there, a query that never takes less than
 * a quarter of the time of a walk is one.
 */
async function openWalks(db: Db) {
  const isWalk = async (find: string, filter: Document) => {
    const { queryPlanner } = await db.command({
      explain: { find, filter },
      verbosity: 'queryPlanner',
    })
    return JSON.stringify(queryPlanner).includes('COLLSCAN')
  }
  /** In ms. */
  async function timeOf(collection: string, filter: Document): Promise<number> {
    const began = performance.now()
    await db.collection(collection).find(filter).toArray()
    return performance.now() - began
  }
  if (!(await isWalk('quotes', { _id: 'an id', sourceId: 'an id' }))) return isWalk
  const walks: number[] = []
  for (let run = 0; run < 3; run++) walks.push(await timeOf('quotes', { absent: 1 }))
  // A busy machine slows one run or another.
  return async (collection: string, filter: Document) => {
    for (let run = 0; run < 30; run++)
      if ((await timeOf(collection, filter)) < Math.min(...walks) / 4) return false
    return true
  }
}

const ACTIONS: Readonly<Record<string, string>> = {
  find: 'find',
  aggregate: 'find',
  count: 'find',
  insert: 'insert',
  update: 'update',
  delete: 'remove',
  createIndexes: 'createIndex',
  listIndexes: 'listIndexes',
}

/** The rights in Sluice's database that a command needs, as `COLLECTION ACTION`. */
function rightsFor(command: Document): string[] {
  const [name = ''] = Object.keys(command)
  if (name === 'explain') return rightsFor(command.explain)
  const action = ACTIONS[name]
  // `doctor` may be refused what it asks a router.
  if (action === undefined || command.$db === 'config') return []
  const upserts = command.updates?.some(({ upsert }: Document) => upsert) ? ['insert'] : []
  return [action, ...upserts].map((right) => `${command[name]} ${right}`)
}

/** Runs the commands of docs/operate/mongodb.md that create roles. */
async function documentedRights(): Promise<Record<string, string[]>> {
  const manual = await readFile(new URL('../../docs/operate/mongodb.md', import.meta.url), 'utf8')
  const script = /```js\n(const on =.*?)```/s.exec(manual)?.[1] ?? ''
  const granted: Record<string, string[]> = {}
  const createRole = ({ role, privileges }: Document) => {
    granted[role] = [...privileges].flatMap(({ resource, actions }: Document) =>
      actions.map((action: string) => `${resource.collection} ${action}`),
    )
    granted[role]?.sort()
  }
  runInNewContext(script, { db: { createRole } })
  return granted
}
