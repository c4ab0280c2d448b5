// The store's commands as a server gets them.
import assert from 'node:assert/strict'
import { mongoCommands, probeStore } from '@sluice/store'
import { requiredUrl } from '@sluice/test-support'
import { BSON, MongoClient, Timestamp } from 'mongodb'
import { describe, type TestContext, test } from 'vitest'
import { commandOf, isCommand, splitMessages } from '../support/mongodb-messages.ts'
import { recordCommands } from '../support/record-commands.ts'
import { type Gate, openTcpProxy } from '../support/tcp-proxy.ts'

/** @param limitMs the time limit of each command. */
async function openCommands(t: TestContext, gate: () => Gate, limitMs?: number) {
  const { url } = await openTcpProxy(t, requiredUrl('MONGODB_URL'), gate)
  const client = new MongoClient(url)
  const db = client.db(`wire_${process.pid}`)
  t.onTestFinished(async () => {
    await db.dropDatabase()
    await client.close()
  })
  return { db, commands: mongoCommands(db, limitMs === undefined ? {} : { limitMs }) }
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
          toClient(chunk) {
            const replies: Buffer[] = []
            splitReplies(chunk, (message) => replies.push(message) > 0)
            return Buffer.concat(
              replies.map((message) => {
                if (!isCommand(message)) return message
                const made = new Timestamp({ t: 1_700_000_000, i: ++time })
                const { operationTime = made, ...reply } = commandOf(message)
                if (!isReplicated) return withDocument(message, reply)
                if ('n' in reply) writtenAt = operationTime
                return withDocument(message, { ...reply, operationTime })
              }),
            )
          },
        }
      })
      const source = 's'.repeat(24)
      await commands.insert('quotes', [{ _id: `${source}q`, sourceId: source, wordCount: 3 }])
      await commands.update('quotes', [{ q: { _id: `${source}q` }, u: { $set: { wordCount: 4 } } }])
      assert.deepEqual(await commands.sumQuotes([source]), [{ _id: source, wordCount: 4, quoteCount: 1 }])
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

/** The message with another document. */
function withDocument(message: Buffer, document: BSON.Document): Buffer {
  const changed = Buffer.concat([message.subarray(0, 21), BSON.serialize(document)])
  changed.writeInt32LE(changed.length)
  return changed
}

test('a build of indexes that takes longer than a command may is no failure', async (t) => {
  let builds = 0
  const { commands } = await openCommands(
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
    300,
  )
  await commands.createIndexes()
  assert.equal(builds, 1)
})

test('a probe writes to every shard', async (t) => {
  const recorded = recordCommands()
  const { commands, db } = await openCommands(t, recorded.gate)
  await probeStore(commands, 100)
  await probeStore(commands, 0)
  assert.equal(await db.collection('writers').countDocuments(), 1)
  const updates = recorded.commands.flatMap(({ updates = [] }) => updates)
  assert(updates.length > 0)
  for (const { q, multi } of updates) assert.deepEqual([typeof q._id, multi], ['object', true])
})
