// Connects to MongoDB with the time limits and the write concern that the store needs.
import { setTimeout as delay } from 'node:timers/promises'
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
 * Connects without waiting, so that a process starts while MongoDB is away. Writes ask for majority write concern; an unreachable server is noticed
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
  const closing = new AbortController()
  void connectFirst(client, closing.signal)
  const db = client.db(DATABASE_IN_URL.exec(url)?.[1] ?? 'sluice')
  return {
    db,
    client,
    // The driver's own `timeoutMS` ends nothing any more; a signal does.
    ping: async () => void (await db.command({ ping: 1 }, { signal: AbortSignal.timeout(2_000) })),
    close() {
      closing.abort()
      return client.close()
    },
  }
}

/** The pause before the next try to connect, in ms. */
const CONNECT_AGAIN_MS = 200

/** Tries until a first connection succeeds: after a first failure the driver gives up for good. After the first success it reconnects by itself. */
async function connectFirst(client: MongoClient, closing: AbortSignal): Promise<void> {
  while (!closing.aborted) {
    try {
      return void (await client.connect())
    } catch {
      await delay(CONNECT_AGAIN_MS, undefined, { ref: false })
    }
  }
}
