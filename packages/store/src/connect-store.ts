// Connects to MongoDB with the time limits and the write concern that the store needs.
import { type Db, MongoClient, type MongoClientOptions } from 'mongodb'

/** A connection to the database that the URL names (`sluice` if it names none). */
export interface StoreConnection {
  db: Db
  client: MongoClient
  /** Resolves when MongoDB answers; rejects if it does not within two seconds. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** `new URL` refuses the list of hosts that a replica set's URL has. */
const DATABASE_IN_URL = /^mongodb(?:\+srv)?:\/\/[^/]+\/([^/?]+)/

/**
 * Connects lazily, so that a process starts while MongoDB is away. Writes ask for majority write concern; an unreachable server is noticed
 * within two seconds, one that hangs within ten.
 */
export function connectStore(url: string, options: MongoClientOptions = {}): StoreConnection {
  const client = new MongoClient(url, {
    appName: 'sluice',
    writeConcern: { w: 'majority' },
    serverSelectionTimeoutMS: 2_000,
    // A MongoDB that takes two seconds for each command is slow, not away.
    connectTimeoutMS: 5_000,
    socketTimeoutMS: 10_000,
    maxPoolSize: 20,
    ...options,
  })
  const db = client.db(DATABASE_IN_URL.exec(url)?.[1] ?? 'sluice')
  return {
    db,
    client,
    // The driver's own `timeoutMS` ends nothing any more; a signal does.
    ping: async () => void (await db.command({ ping: 1 }, { signal: AbortSignal.timeout(2_000) })),
    close: () => client.close(),
  }
}
