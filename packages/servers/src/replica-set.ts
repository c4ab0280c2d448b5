import { type Db, MongoServerError } from 'mongodb'
import { askMongodb } from './mongodb-answers.ts'

export const replicaSetName = 'sluice'

const notYetInitialized = 94

/** One command to the `admin` database. */
type Command = Pick<Db, 'command'>

/** Whether the mongod at this URL takes writes as the one node of its replica set; helps it there, so ask until it does. */
export async function isReplicaSetReady(url: string, host: string): Promise<boolean> {
  try {
    return await askMongodb(url, (admin) => becomePrimary(admin, host))
  } catch {
    return false
  }
}

/** Forms the one-node replica set once, and tells it its address where that has changed since. True where it is the primary by now. */
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
