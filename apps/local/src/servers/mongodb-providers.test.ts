import assert from 'node:assert/strict'
import { type Document, MongoServerError } from 'mongodb'
import { test } from 'vitest'
import { becomePrimary } from './mongodb-providers.ts'

/** A mongod's answers, by command; `changes` are the other commands. */
function scripted(answers: Record<string, () => Document>) {
  const changes: Document[] = []
  const command = async (asked: Document) => {
    const [name = ''] = Object.keys(asked)
    const answer = answers[name]
    if (answer !== undefined) return answer()
    changes.push(asked)
    return { ok: 1 }
  }
  return { command, changes }
}

const host = '127.0.0.1:23456'
const secondary = () => ({ isWritablePrimary: false })

test('a new mongod is made a replica set of one', async () => {
  const uninitialised = () => {
    throw new MongoServerError({ message: 'no replset config has been received', code: 94 })
  }
  const mongod = scripted({ hello: secondary, replSetGetConfig: uninitialised })
  assert.equal(await becomePrimary(mongod, host), false)
  assert.deepEqual(mongod.changes, [
    { replSetInitiate: { _id: 'sluice', members: [{ _id: 0, host }] } },
  ])
})

test('a mongod that ran on another port gets its new address', async () => {
  const config = {
    _id: 'sluice',
    version: 3,
    members: [{ _id: 0, host: '127.0.0.1:20001', priority: 1 }],
  }
  const mongod = scripted({ hello: secondary, replSetGetConfig: () => ({ config }) })
  assert.equal(await becomePrimary(mongod, host), false)
  const moved = { _id: 'sluice', version: 4, members: [{ _id: 0, host, priority: 1 }] }
  assert.deepEqual(mongod.changes, [{ replSetReconfig: moved, force: true }])
})

test('a mongod in an election is left alone', async () => {
  const config = { _id: 'sluice', version: 1, members: [{ _id: 0, host }] }
  const mongod = scripted({ hello: secondary, replSetGetConfig: () => ({ config }) })
  assert.equal(await becomePrimary(mongod, host), false)
  assert.deepEqual(mongod.changes, [])
})

test('a primary is ready', async () => {
  const mongod = scripted({ hello: () => ({ isWritablePrimary: true, me: host }) })
  assert.equal(await becomePrimary(mongod, host), true)
})
