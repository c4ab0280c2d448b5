import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createKey } from '@sluice/credentials/keys'
import { freePort } from '@sluice/local'
import type { QuoteDocument, SourceDocument } from '@sluice/store'
import { beforeSuite, type TestScope, testQueueName } from '@sluice/test-support'
import type { Db } from 'mongodb'
import { describe, test } from 'vitest'
import { createStartNode, type RedisNode, redisProgram } from '../faults/redis-topology.ts'
import { openTokens } from '../laws/support/open-tokens.ts'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openQueue, type QueueView } from '../support/open-queue.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { startSluice, type TestSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

const program = await redisProgram()
const LAST_SLOT = 16_383
const BOUND = 100
const LANES = ['interactive', 'bulk']
const ids = Array.from({ length: 20 }, () => randomUUID())

/** A deployment of its own, with its queue on one node of the cluster. */
interface Cell extends TestSluice {
  node: RedisNode
  queue: QueueView
  operator: string
  posted: Posted[]
}

describe.skipIf(program === undefined)('two cells on one Redis Cluster', () => {
  let cells: [Cell, Cell]
  beforeSuite(async (t) => {
    const nodes = await startTwoNodes(t)
    const redisUrl = `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`
    cells = await Promise.all([
      startCell(t, redisUrl, nodes[0], { MAX_QUEUE_THREADS: String(BOUND) }),
      startCell(t, redisUrl, nodes[1]),
    ])
  })
  const post = async (cell: Cell, thread: ReturnType<typeof aThread>, prefer?: string) => {
    const answer = await postThread(cell, thread, prefer)
    cell.posted.push(answer)
    return answer
  }

  test('each stores the threads of its tenant once, although both post the same ids', async () => {
    const answers = await Promise.all(
      cells.flatMap((cell) =>
        ids.flatMap((externalId) => [
          post(cell, aThread({ externalId })),
          post(cell, aThread({ externalId })),
        ]),
      ),
    )
    assert.deepEqual(statusesOf(answers), [200])
    for (const { queue, db, posted } of cells) {
      await queue.drained()
      await assertStored(db, posted)
    }
  })

  test('the keys of each queue are on a node of their own', async () => {
    for (const { node, settings } of cells) {
      const keys = (await node.send('KEYS', '*')) as string[]
      assert(keys.length > 5)
      assert.deepEqual(
        keys.filter((key) => !key.startsWith(`{${settings.QUEUE}}:`)),
        [],
      )
    }
  })

  test('neither accepts the keys of the other, nor knows its jobs', async () => {
    const [one, other] = cells
    const accepted = await post(one, aThread(), 'respond-async')
    assert.equal(accepted.status, 202)
    const look = async (cell: Cell, key: string) => {
      const answer = await fetch(`${cell.url}${accepted.headers.get('location')}`, {
        headers: { 'x-api-key': key },
      })
      return answer.status
    }
    assert.equal(await look(one, one.key), 200)
    assert.equal(await look(other, other.key), 404)
    assert.equal(await look(other, one.key), 403)
    assert.equal((await postThread({ ...other, key: one.key }, aThread())).status, 403)
    assert.equal((await postThread({ ...one, key: other.key }, aThread())).status, 403)
  })

  test('a tenant whose documents were copied to another cell goes on there', async () => {
    const [one, other] = cells
    const at = async (cell: Cell) => {
      const { key } = await createKey(cell.db, { tenant: 'globex', name: 'moves' })
      await untilKeyIsKnown(cell.url, key)
      return { ...cell, key }
    }
    const [from, to] = [await at(one), await at(other)]
    const thread = aThread()
    assert.equal((await post(from, thread)).status, 200)
    await one.queue.drained()
    await copyTenant(one.db, other.db, 'globex')
    const repeated = await post(to, thread)
    assert.deepEqual(outcomesIn(repeated), ['unchanged', 'unchanged', 'unchanged', 'unchanged'])
    const grown = await post(to, aThread({ externalId: thread.externalId, quotes: 4 }))
    assert.deepEqual(outcomesIn(grown), [
      'updated',
      'unchanged',
      'unchanged',
      'unchanged',
      'created',
    ])
    await assertStored(other.db, other.posted)
  })

  test('paused lanes and a full queue of one leave the other alone', async () => {
    const [one, other] = cells
    await one.queue.drained()
    for (const lane of LANES) assert.equal(await act(one, `${lane}:pause`), 200)
    const filling = await Promise.all(
      Array.from({ length: BOUND + 1 }, () => post(one, aThread(), 'respond-async')),
    )
    const codes = filling.map(({ status, body }) => (status === 202 ? 202 : body.code))
    assert.deepEqual(codes.toSorted(), [...Array.from({ length: BOUND }, () => 202), 'queue_full'])

    const answers = await Promise.all(
      Array.from({ length: BOUND + 1 }, (_, at) =>
        post(other, aThread(), at % 2 === 0 ? 'respond-async' : undefined),
      ),
    )
    assert.deepEqual(statusesOf(answers), [200, 202])
    await other.queue.drained()
    await assertStored(other.db, other.posted)
    assert.equal(await one.queue.left(), BOUND)

    for (const lane of LANES) assert.equal(await act(one, `${lane}:resume`), 200)
    await one.queue.drained()
    await assertStored(one.db, one.posted)
  })
})

/** Copies what MongoDB has of a tenant, as docs/adr/0020-cells.md says. */
async function copyTenant(from: Db, to: Db, tenant: string): Promise<void> {
  const sources = await from.collection<SourceDocument>('sources').find({ tenant }).toArray()
  const ofSources = { sourceId: { $in: sources.map(({ _id }) => _id) } }
  const quotes = await from.collection<QuoteDocument>('quotes').find(ofSources).toArray()
  await until('no open token', async () => (await openTokens(from, ...sources)).length === 0)
  const writers = await from.collection<{ _id: string }>('writers').find().toArray()
  await to.collection<SourceDocument>('sources').insertMany(sources)
  await to.collection<QuoteDocument>('quotes').insertMany(quotes)
  await to
    .collection<{ _id: string }>('writers')
    .insertMany(writers.filter(({ _id }) => _id !== 'probe'))
}

/** The outcomes of a source and of its quotes. */
function outcomesIn({ body }: Posted): unknown[] {
  const { source, quotes } = Object(body)
  return [source, ...quotes].map(({ outcome }) => outcome)
}

/** Starts a cluster of two nodes, which have half of the slots each. */
async function startTwoNodes(t: TestScope): Promise<[RedisNode, RedisNode]> {
  assert(program)
  const start = await createStartNode(t, program)
  const startNode = async (from: number, to: number) => {
    const busPort = await freePort()
    const cluster = ['--cluster-enabled', 'yes', '--cluster-port', String(busPort)]
    const node = await start([
      ...cluster,
      '--maxmemory-policy',
      'noeviction',
      '--appendonly',
      'yes',
    ])
    await node.send('CLUSTER', 'ADDSLOTSRANGE', from, to)
    await node.send('CLUSTER', 'SET-CONFIG-EPOCH', from + 1)
    return { node, busPort }
  }
  const middle = Math.floor(LAST_SLOT / 2)
  const [one, other] = await Promise.all([startNode(0, middle), startNode(middle + 1, LAST_SLOT)])
  await one.node.send('CLUSTER', 'MEET', '127.0.0.1', other.node.port, other.busPort)
  for (const { node } of [one, other])
    await until('a cluster that is up', async () =>
      /state:ok/.test(String(await node.send('CLUSTER', 'INFO'))),
    )
  return [one.node, other.node]
}

/** Starts a cell with a queue whose slot is on this node. */
async function startCell(
  t: TestScope,
  redisUrl: string,
  node: RedisNode,
  bounds = {},
): Promise<Cell> {
  const QUEUE = await until('a name of which the slot is here', async () => {
    const name = testQueueName()
    const isHere = await node.send('GET', `{${name}}`).then(
      () => true,
      () => false,
    )
    return isHere ? name : undefined
  })
  const settings = { QUEUE, TENANT_SHARE: '1', ...bounds }
  const sluice = await startSluice(t, { redisUrl, settings })
  const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
  return { ...sluice, node, queue: openQueue(t, sluice.settings), operator: key, posted: [] }
}

async function act({ url, operator }: Cell, what: string): Promise<number> {
  const answer = await fetch(`${url}/admin/lanes/${what}`, {
    method: 'POST',
    headers: { 'x-api-key': operator },
  })
  await answer.arrayBuffer()
  return answer.status
}
