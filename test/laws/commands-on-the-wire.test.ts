// The store's commands as a server gets them.
import assert from 'node:assert/strict'
import { type CommandOptions, commitProbe, mongoCommands, repairSources } from '@sluice/store'
import { requiredUrl } from '@sluice/test-support'
import { type Document, MongoClient, ObjectId, Timestamp } from 'mongodb'
import { describe, type TestContext, test } from 'vitest'
import { failCommands } from '../faults/foreign-engine.ts'
import { commandOf, isCommand, splitMessages, withDocument } from '../support/mongodb-messages.ts'
import { recordCommands } from '../support/record-commands.ts'
import { type Gate, openTcpProxy } from '../support/tcp-proxy.ts'

async function openCommands(t: TestContext, gate: () => Gate, options?: CommandOptions) {
  const { url } = await openTcpProxy(t, requiredUrl('MONGODB_URL'), gate)
  // Connected, because time limits of commands include the time to connect.
  const client = await new MongoClient(url).connect()
  const db = client.db(`wire_${process.pid}`)
  t.onTestFinished(async () => {
    await db.dropDatabase()
    await client.close()
  })
  return { db, commands: mongoCommands(db, options) }
}

describe('a sum of quotes', () => {
  for (const isReplicated of [true, false]) {
    test(`reads ${isReplicated ? "after the last write by the cluster's clock" : 'with majority on a server without replicas'}`, async (t) => {
      const recorded = recordCommands()
      let time = 0
      let writtenAt: Timestamp | undefined
      const { commands } = await openCommands(t, () => {
        const splitReplies = splitMessages()
        return {
          ...recorded.gate(),
          toClient: (chunk) =>
            splitReplies(chunk, (message) => {
              if (!isCommand(message)) return true
              const made = new Timestamp({ t: 1_700_000_000, i: ++time })
              const { operationTime = made, ...reply } = commandOf(message)
              if (!isReplicated) return withDocument(message, reply)
              if ('n' in reply) writtenAt = operationTime
              return withDocument(message, { ...reply, operationTime })
            }),
        }
      })
      const source = 's'.repeat(24)
      await commands.insert('quotes', [{ _id: `${source}q`, sourceId: source, wordCount: 3 }])
      await commands.update('quotes', [{ q: { _id: `${source}q` }, u: { $set: { wordCount: 4 } } }])
      assert.deepEqual(await commands.sumQuotes([source]), [
        { _id: source, wordCount: 4, quoteCount: 1 },
      ])
      assert.equal(writtenAt !== undefined, isReplicated)
      const expected = { level: 'majority', ...(writtenAt && { afterClusterTime: writtenAt }) }
      const sums = recorded.commands.filter((command) => 'aggregate' in command)
      assert.deepEqual(
        sums.map(({ readConcern }) => readConcern),
        [expected],
      )
    })
  }
})

test('a build of indexes that takes longer than a command may is no failure', async (t) => {
  let builds = 0
  const { db, commands } = await openCommands(
    t,
    () => {
      const split = splitMessages()
      const mayPass = (message: Buffer) => {
        const isBuild = isCommand(message) && 'createIndexes' in commandOf(message)
        builds += Number(isBuild)
        return !isBuild
      }
      return { toServer: (chunk) => split(chunk, mayPass), toClient: (chunk) => chunk }
    },
    { limitMs: 300, listsSources: true },
  )
  // Connects first: that alone may take longer.
  await db.command({ ping: 1 })
  await commands.prepare()
  assert(builds > 0)
})

test('a command that met another one is answered after a majority write, which what it wrote precedes', async (t) => {
  const sent: Document[] = []
  const { commands, db } = await openCommands(
    t,
    failCommands((command) => {
      sent.push(command)
      const isQuotes = command.insert === 'quotes'
      return isQuotes
        ? { code: 112, errmsg: 'deadlock detected', takesEffect: (at) => at === 0 }
        : undefined
    }),
  )
  const quotes = ['q1', 'q2'].map((_id) => ({ _id, sourceId: 's', wordCount: 1 }))
  assert.deepEqual(await commands.insert('quotes', quotes), { n: 0, refused: [0, 1] })
  const after = sent.slice(1 + sent.findIndex(({ insert }) => insert === 'quotes'))
  assert(
    after.some(({ update, writeConcern }) => update === 'writers' && writeConcern.w === 'majority'),
  )
  assert.equal(await db.collection('quotes').countDocuments(), 1)
})

test('a check of sources goes on in smaller steps where MongoDB is too slow for large ones', async (t) => {
  const asked: number[] = []
  const answers = ({ find, limit, aggregate, pipeline }: Document) => {
    if (find === 'sources' && limit !== undefined) asked.push(limit)
    const summed = aggregate === 'quotes' ? pipeline[0].$match.sourceId.$in.length : 0
    if (summed > 0) asked.push(summed)
    return summed <= 10 && !(find === 'sources' && limit > 250)
  }
  const { commands } = await openCommands(
    t,
    () => {
      const split = splitMessages()
      const mayPass = (message: Buffer) => !isCommand(message) || answers(commandOf(message))
      return { toServer: (chunk) => split(chunk, mayPass), toClient: (chunk) => chunk }
    },
    { limitMs: 2_000 },
  )
  const ids = Array.from({ length: 31 }, (_, at) => String(at).padStart(24, 's'))
  const meta = { version: new ObjectId(), stamp: 1 }
  await commands.insert(
    'sources',
    ids.map((_id) => ({ _id, wordCount: 0, quoteCount: 0, meta })),
  )
  await commands.insert('quotes', [{ _id: `${ids[30]}q`, sourceId: ids[30], wordCount: 3 }])
  const { checked, wrong } = await repairSources(commands, { repair: false })
  assert.deepEqual([checked, wrong.map(({ id }) => id)], [31, [ids[30]]])
  assert.deepEqual(asked.slice(0, 5), [25_000, 2_500, 250, 31, 10])
})

test('a probe writes to every shard', async (t) => {
  const recorded = recordCommands()
  const { commands, db } = await openCommands(t, recorded.gate)
  await commitProbe(commands, 100)
  await commitProbe(commands, 0)
  assert.equal(await db.collection('writers').countDocuments(), 1)
  const updates = recorded.commands.flatMap(({ updates = [] }) => updates)
  assert(updates.length > 0)
  for (const { q, multi } of updates) assert.deepEqual([typeof q._id, multi], ['object', true])
})
