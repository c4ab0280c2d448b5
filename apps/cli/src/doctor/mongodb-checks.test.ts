import assert from 'node:assert/strict'
import { type Document, MongoServerError } from 'mongodb'
import { test } from 'vitest'
import { checkMongodb } from './mongodb-checks.ts'

// What the stand-in of the tests can't be: another version, a replica set, sharded. test/faults/doctor-checks.test.ts has the rest.

const HEALTHY: Record<string, Document> = {
  buildInfo: { version: '8.0.4' },
  hello: { setName: 'rs0', hosts: ['a:27017', 'b:27017', 'c:27017'], localTime: new Date() },
  getDefaultRWConcern: { defaultWriteConcern: { w: 'majority' } },
  listIndexes: { cursor: { firstBatch: [{ key: { sourceId: 1 }, name: 'sourceId_1' }] } },
}

async function found(replies: Record<string, Document | Error> = {}, probe = async () => {}) {
  const ask = async (_: string, command: Document) => {
    const reply = { ...HEALTHY, ...replies }[Object.keys(command)[0] ?? '']
    if (reply instanceof Error || reply === undefined) throw reply
    return reply
  }
  const { checks } = await checkMongodb({ database: 'sluice', ask, probe, listSources: 'off', searchQuotes: 'off' })
  return checks.filter(({ state }) => state !== 'ok').map(({ state, text, fix = '' }) => `${state} ${text} | ${fix}`)
}

const refused = new MongoServerError({ code: 13, message: 'not authorized' })

test('finds nothing wrong with a replica set of three', async () => {
  assert.deepEqual(await found(), [])
})

test('finds an old version, a majority that does not commit, too few members, and a weak write concern', async () => {
  assert.match(String(await found({ buildInfo: { version: '4.2.24' } })), /^FAULT version: 4\.2\.24 .*apt-get install/)
  const probe = async () => {
    throw new Error('waiting for replication timed out')
  }
  assert.match(String(await found({}, probe)), /^FAULT a majority commits: Error: waiting .*rs\.status\(\)/)
  assert.match(
    String(await found({ hello: { setName: 'rs0', hosts: ['a:1'], localTime: new Date() } })),
    /^note .*members: 1 .*rs\.add/,
  )
  const weak = { getDefaultRWConcern: { defaultWriteConcern: { w: 1 } } }
  assert.match(String(await found(weak)), /^note default write concern: \{"w":1\}.*setDefaultRWConcern/)
})

test('says what can’t be asked, which is no fault', async () => {
  const all = await found({ getDefaultRWConcern: refused, listIndexes: refused })
  assert.deepEqual(all, [
    'note the default write concern can’t be asked: not authorized | ',
    'note the indexes of quotes can’t be asked: not authorized | ',
  ])
  const absent = new MongoServerError({ code: 26, message: 'ns does not exist' })
  assert.deepEqual(await found({ listIndexes: absent }), [])
})

test('compares the shard keys if MongoDB is sharded', async () => {
  const hello = { msg: 'isdbgrid', localTime: new Date() }
  const collections = [
    { _id: 'sluice.sources', key: { _id: 1 } },
    { _id: 'sluice.quotes', key: { _id: 'hashed' } },
  ]
  const all = await found({ hello, find: { cursor: { firstBatch: collections } } })
  assert.match(all[0] ?? '', /^FAULT shard key of quotes: \{"_id":"hashed"\}.*reshardCollection: "sluice\.quotes"/)
  assert.match(
    all[1] ?? '',
    /^FAULT shard key of writers: none.*sh\.shardCollection\("sluice\.writers", \{"_id":"hashed"\}\)/,
  )
  assert.equal(all.length, 2)
})
