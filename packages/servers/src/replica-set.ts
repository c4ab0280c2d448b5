// Checks whether a MongoDB answers, and makes a mongod the one node of a replica set.
import { type Db, MongoClient, MongoServerError } from 'mongodb'

export const replicaSetName = 'sluice'

const notYetInitialized = 94

/** One command to the `admin` database. */
type Command = Pick<Db, 'command'>

/** Whether the mongod at this URL accepts writes as the one node of its replica set. Forms the set if needed, so call it until true. */
export async function isReplicaSetReady(url: string, host: string): Promise<boolean> {
  try {
    return await askMongodb(url, (admin) => becomePrimary(admin, host))
  } catch {
    return false
  }
}

/** Forms the one-node replica set, or updates its address if that has changed. True if the node is the primary by now. */
export async function becomePrimary(admin: Command, host: string): Promise<boolean> {
  const hello = await admin.command({ hello: 1 })
  if (hello.isWritablePrimary === true && hello.me === host) return true
  const config = await storedConfig(admin)
  if (config === undefined) {
    await admin.command({ replSetInitiate: { _id: replicaSetName, members: [{ _id: 0, host }] } })
  } else if (config.members[0]?.host !== host) {
    const moved = { ...config, version: config.version + 1, members: [{ ...config.members[0], host }] }
    await admin.command({ replSetReconfig: moved, force: true })
  }
  return false
}

interface ReplicaSetConfig {
  readonly version: number
  readonly members: readonly { readonly host: string }[]
}

async function storedConfig(admin: Command): Promise<ReplicaSetConfig | undefined> {
  try {
    const { config } = await admin.command({ replSetGetConfig: 1 })
    return config
  } catch (error) {
    if (error instanceof MongoServerError && error.code === notYetInitialized) return undefined
    throw error
  }
}

/** Runs `ask` on the `admin` database of a MongoDB. Throws if it does not answer within `withinMs` milliseconds. */
async function askMongodb<T>(url: string, ask: (admin: Db) => Promise<T>, withinMs = 300): Promise<T> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: withinMs, connectTimeoutMS: withinMs })
  try {
    await client.connect()
    return await ask(client.db('admin'))
  } finally {
    await client.close()
  }
}

/** Whether a MongoDB at this URL answers within `withinMs` milliseconds. */
export async function mongodbAnswers(url: string, withinMs?: number): Promise<boolean> {
  try {
    await askMongodb(url, (admin) => admin.command({ ping: 1 }), withinMs)
    return true
  } catch {
    return false
  }
}
