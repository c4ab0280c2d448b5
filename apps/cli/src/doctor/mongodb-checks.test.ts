import assert from 'node:assert/strict'
import { type Document, Long, MongoServerError } from 'mongodb'
import { test } from 'vitest'
import { checkClocks } from './check.ts'
import { checkMongodb } from './mongodb-checks.ts'

// What the tests' emulator can't be: another version or engine, a replica set, sharded.
// test/faults/doctor-checks.full.test.ts has the rest.

const HEALTHY: Record<string, Document> = {
  buildInfo: { version: '8.0.4' },
  hello: { setName: 'rs0', hosts: ['a:27017', 'b:27017', 'c:27017'], localTime: new Date() },
  explain: { queryPlanner: { winningPlan: { stage: 'COLLSCAN' } } },
  count: { n: 0 },
  keys: { cursor: { firstBatch: [{ _id: 'a key' }] } },
  sources: { cursor: { firstBatch: [] } },
  listIndexes: { cursor: { firstBatch: [{ key: { sourceId: 1 }, name: 'sourceId_1' }] } },
}

/** @param replies by the name of the command or, of `find`, by the collection. */
function checked(replies: Record<string, Document | Error> = {}, probe = async () => {}) {
  const ask = async (_: string, command: Document) => {
    const reply = { ...HEALTHY, ...replies }[command.find ?? Object.keys(command)[0]]
    if (reply instanceof Error || reply === undefined) throw reply
    return reply
  }
  return checkMongodb({ database: 'sluice', ask, probe, listSources: 'off' })
}

async function found(...how: Parameters<typeof checked>) {
  const { checks } = await checked(...how)
  return checks
    .filter(({ state }) => state !== 'ok')
    .map(({ state, text, fix = '' }) => `${state} ${text} | ${fix}`)
}

const refused = new MongoServerError({ code: 13, message: 'not authorized' })

test('finds nothing wrong with a replica set of three', async () => {
  assert.deepEqual(await found(), [])
})

test('calls nothing ok that the server does not say', async () => {
  const { checks, aheadMs } = await checked({ buildInfo: {}, hello: {} })
  const all = [...checks, ...checkClocks([['MongoDB', aheadMs]])]
  assert.deepEqual(
    all.filter(({ state }) => state === 'ok').map(({ text }) => text),
    ['a majority commits: yes', 'index of quotes by sourceId'],
  )
  assert.doesNotMatch(JSON.stringify(all), /undefined|NaN/)
})

test('finds an old version, a majority that does not commit, a missing right, and too few members', async () => {
  assert.match(
    String(await found({ buildInfo: { version: '4.2.24' } })),
    /^FAULT version: 4\.2\.24 .*apt-get install/,
  )
  const probe = async () => {
    throw new Error('waiting for replication timed out')
  }
  assert.match(
    String(await found({}, probe)),
    /^FAULT a majority commits: Error: waiting .*rs\.status\(\)/,
  )
  assert.match(
    String(await found({}, () => Promise.reject(refused))),
    /^FAULT a majority commits: MongoServerError: not authorized .*grantRolesToUser.*#rights-in-mongodb$/,
  )
  assert.match(
    String(await found({ hello: { setName: 'rs0', hosts: ['a:1'], localTime: new Date() } })),
    /^note .*members: 1 .*rs\.add/,
  )
})

test('says what can’t be asked, which is no fault', async () => {
  assert.deepEqual(await found({ listIndexes: refused }), [
    'note the indexes of quotes can’t be asked: not authorized | ',
  ])
  const absent = new MongoServerError({ code: 26, message: 'ns does not exist' })
  assert.deepEqual(await found({ listIndexes: absent }), [])
})

const rows = (...firstBatch: Document[]) => ({ cursor: { firstBatch } })

test('finds that all keys are lost, unless nothing is stored yet', async () => {
  assert.match(
    String(await found({ keys: rows(), sources: rows({ _id: 'a' }) })),
    /^FAULT keys: none, although threads are stored.*--nsInclude=sluice\.keys .*sluice keys create/,
  )
  assert.deepEqual(await found({ keys: rows() }), [])
  assert.deepEqual(await found({ keys: refused }), [
    'note the keys can’t be asked: not authorized | ',
  ])
})

test('compares the shard keys if MongoDB is sharded', async () => {
  const hello = { msg: 'isdbgrid', localTime: new Date() }
  const collections = rows(
    { _id: 'sluice.sources', key: { _id: 1 } },
    { _id: 'sluice.quotes', key: { _id: 'hashed' } },
  )
  const all = await found({ hello, shards: rows({ _id: 'shard0' }), collections })
  assert.match(
    all[0] ?? '',
    /^FAULT shard key of quotes: \{"_id":"hashed"\}.*reshardCollection: "sluice\.quotes"/,
  )
  assert.match(
    all[1] ?? '',
    /^FAULT shard key of writers: none.*createIndex\(\{"_id":"hashed"\}\); sh\.shardCollection\("sluice\.writers", \{"_id":"hashed"\}\)/,
  )
  assert.equal(all.length, 2)
  assert.deepEqual(await found({ hello, shards: refused, collections: refused }), [
    'note the shards can’t be asked: not authorized | ',
    'note the shard keys can’t be asked: not authorized | ',
  ])
})

/** Recorded. The driver reads an int64 as one of these, by its options. */
const documentDb = (localTime: number | bigint | Long) => ({
  hello: {
    isWritablePrimary: true,
    msg: 'isdbgrid',
    localTime,
    maxWireVersion: 21,
    readOnly: false,
    ok: 1,
  },
  shards: rows(),
  collections: rows(),
})
const recordedAt = Date.now()
const ferretDb = {
  hello: {
    isWritablePrimary: true,
    localTime: new Date(recordedAt),
    maxWireVersion: 21,
    readOnly: false,
    ok: 1,
  },
}

test('finds no fault of engines that speak its protocol and shard nothing, and reads their clocks', async () => {
  const times = [recordedAt, BigInt(recordedAt), Long.fromNumber(recordedAt)]
  for (const replies of [ferretDb, ...times.map(documentDb)]) {
    assert.deepEqual(await found(replies), [
      'note replica set: none, members: 0 (in production at least 3) | ',
    ])
    const { aheadMs } = await checked(replies)
    assert.ok(aheadMs <= 0 && aheadMs >= recordedAt - Date.now(), `${aheadMs} ms`)
  }
})
