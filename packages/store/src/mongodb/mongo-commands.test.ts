import assert from 'node:assert/strict'
import { type Document, MongoNetworkError, MongoServerError } from 'mongodb'
import { test } from 'vitest'
import { indexesFor } from './mongo-commands.ts'

const OF_QUOTES = { quotes: { sourceId_1: 'sourceId' } }
const COLLSCAN = { stage: 'COLLSCAN' }
const IXSCAN = { stage: 'FETCH', inputStage: { stage: 'IXSCAN', keyPattern: { _id: 1 } } }

const answering = (winningPlan: Document, n: number) => async (command: Document) =>
  'explain' in command ? { queryPlanner: { winningPlan } } : { n }

const plans: [server: string, winningPlan: Document, wanted: object][] = [
  ['MongoDB', IXSCAN, {}],
  ['MongoDB before the first quote', { stage: 'EOF' }, {}],
  [
    'a sharded MongoDB',
    { stage: 'SHARD_MERGE', shards: [{ winningPlan: IXSCAN }, { winningPlan: IXSCAN }] },
    {},
  ],
  ['a server that walks the collection', COLLSCAN, OF_QUOTES],
  [
    'a shard that walks the collection',
    { stage: 'SINGLE_SHARD', shards: [{ winningPlan: COLLSCAN }] },
    OF_QUOTES,
  ],
]
for (const [server, winningPlan, wanted] of plans)
  test(`${server}: ${wanted === OF_QUOTES ? 'an' : 'no'} index of quotes by their sources`, async () => {
    for (const n of [0, 1_000_000])
      assert.deepEqual(await indexesFor(answering(winningPlan, n), {}), wanted)
  })

test('DocumentDB, which walks a collection that is small: no index of quotes', async () => {
  assert.deepEqual(await indexesFor(answering(COLLSCAN, 50), {}), {})
})

test('FerretDB, whose plan is that of PostgreSQL: no index of quotes, even if PostgreSQL walks a small collection', async () => {
  const ask = async () => ({ queryPlanner: { Plan: { 'Node Type': 'Seq Scan' } } })
  assert.deepEqual(await indexesFor(ask, { listsSources: true }), {
    sources: { listKey_1: 'meta.listKey' },
  })
})

test('a server that does not explain: an index of quotes', async () => {
  const ask = async () => {
    throw new MongoServerError({ code: 59, message: "no such command: 'explain'" })
  }
  assert.deepEqual(await indexesFor(ask, {}), OF_QUOTES)
})

test('a server that is unavailable: no decision', async () => {
  const ask = async () => {
    throw new MongoNetworkError('refused')
  }
  await assert.rejects(indexesFor(ask, {}), MongoNetworkError)
})
