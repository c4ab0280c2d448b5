// Connects to MongoDB with time limits and a write concern, checks which store the database is
// (docs/adr/0021-layout-of-mongodb.md, docs/adr/0023-identity-and-marks.md), and probes whether
// MongoDB commits writes.
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Db, MongoClient, MongoServerSelectionError, MongoTopologyClosedError } from 'mongodb'
import {
  type CommandMetrics,
  errorCodeOf,
  isUnauthorized,
  PRIMARY,
  PRIMARY_MAJORITY,
  type StoreCommands,
} from './commands.ts'

export type StoreConnection = ReturnType<typeof connectStore>

/** Finds the database in a URL. `new URL` refuses the list of hosts of a replica set. */
const DATABASE_IN_URL = /^mongodb(?:\+srv)?:\/\/[^/?]+\/([^/?]+)/

/**
 * Connects in the background to the database that the URL names (or `sluice`), so that a process
 * can start while MongoDB is unavailable. Notices an unreachable server within 2 s, and a server
 * that hangs within 10 s.
 * @param metrics observe each command. This costs CPU, because the driver then reads each reply
 * twice.
 */
export function connectStore(url: string, metrics?: CommandMetrics) {
  const client = new MongoClient(url, {
    appName: 'sluice',
    writeConcern: { w: 'majority' },
    serverSelectionTimeoutMS: 2_000,
    // A MongoDB that needs two seconds for each command is slow, not unavailable.
    connectTimeoutMS: 5_000,
    socketTimeoutMS: 10_000,
    maxPoolSize: 20,
    monitorCommands: metrics !== undefined,
  })
  const observe = ({ commandName: command, duration }: { commandName: string; duration: number }) =>
    metrics?.times.observe({ command }, duration / 1000)
  client.on('commandSucceeded', observe).on('commandFailed', observe)
  let unauthorized = { at: Number.NEGATIVE_INFINITY, reason: '' }
  client.on('commandFailed', ({ failure }) => {
    metrics?.errors.inc({ code: errorCodeOf(failure) })
    if (!isUnauthorized(failure)) return
    // Without the values in the command, which the message quotes.
    unauthorized = { at: performance.now(), reason: failure.message.replace(/,.*/s, ' …') }
  })
  const db = client.db(DATABASE_IN_URL.exec(url)?.[1] ?? 'sluice')
  const closing = new AbortController()
  void connectFirst(client, closing.signal)
  return {
    db,
    /** Returns why MongoDB refused a command of this user in the last seconds. Needs `metrics`. */
    unauthorized: () =>
      performance.now() - unauthorized.at < REFUSED_MS ? unauthorized.reason : undefined,
    async close(): Promise<void> {
      closing.abort()
      // The driver asks MongoDB to end its sessions. They also expire without that, so a MongoDB
      // that hangs must not delay a stop.
      await Promise.race([client.close(), delay(CLOSE_MS, undefined, { ref: false })])
    },
  }
}

/** After this time without a refusal, the user may have got the right. */
const REFUSED_MS = 10_000

/** The longest wait for a close, and the pause before the next attempt to connect. */
const CLOSE_MS = 100
const CONNECT_AGAIN_MS = 200

/** Why the last attempt at a client's first connection failed. */
const failures = new WeakMap<MongoClient, unknown>()

/**
 * Returns the error itself, or why the client is not connected: the error of a command that waited
 * for the connection only says that there is none.
 */
export function reasonBehind(error: unknown, client: MongoClient): unknown {
  const reason = (error instanceof MongoTopologyClosedError && failures.get(client)) || error
  // The driver drops servers of another replica set, and then only says that it found none in time.
  if (reason instanceof MongoServerSelectionError && reason.reason?.servers.size === 0) {
    reason.message = `MONGODB_URL names a replica set that has no server there (replicaSet=${client.options.replicaSet})`
    reason.code = 'REPLICA_SET'
  }
  return reason
}

/**
 * Tries to connect until it succeeds once. The driver gives up after a failed first connection, but
 * reconnects by itself after a successful one.
 */
async function connectFirst(client: MongoClient, closing: AbortSignal): Promise<void> {
  while (!closing.aborted) {
    try {
      return void (await client.connect())
    } catch (error) {
      failures.set(client, error)
      await delay(CONNECT_AGAIN_MS, undefined, { ref: false })
    }
  }
}

/** The probe's document in `writers`. Workers need the rights for that collection anyway. */
const PROBE = 'probe'
/**
 * A range instead of an id, because a router sends it to every shard. So the probe fails while any
 * shard is unavailable.
 */
const ONLY_PROBE = { _id: { $gte: PROBE, $lt: `${PROBE}\0` } }
/** Half of the limit of a document. */
const MAX_BYTES = 8 * 1024 * 1024
/**
 * The time limit of each of a probe's commands. A slow store passes, a store that hangs does not.
 */
export const PROBE_MS = 5_000

/**
 * Resolves when MongoDB has committed a majority write of this size (at most `MAX_BYTES`). Writes a
 * small document first, so that probes cost little while MongoDB is unavailable. Throws if MongoDB
 * refuses, is unavailable, or exceeds the commands' time limit.
 */
export async function commitProbe(
  commands: Pick<StoreCommands, 'update' | 'insert'>,
  bytes: number,
): Promise<void> {
  const fill = async (size: number) => {
    // Random bytes, because they can't be compressed.
    const values = { since: new Date(), filler: randomBytes(size) }
    const { n } = await commands.update('writers', [
      { q: ONLY_PROBE, u: { $set: values }, multi: true },
    ])
    if (n === 0) await commands.insert('writers', [{ _id: PROBE, ...values }])
  }
  for (const size of bytes === 0 ? [0] : [0, Math.min(bytes, MAX_BYTES), 0]) await fill(size)
}

/** The number of the documents' layout. ADR 21 says when it rises. */
const LAYOUT = 1

/** The documents of the collection `layout`. */
type LayoutDocument = { _id: typeof ID; number: number }
type IdentityDocument = { _id: typeof STORE; id: string; first?: string }
const ID = 'documents'
const STORE = 'store'

/** The documents in MongoDB have another layout than this release reads and writes. */
export class StoreLayoutError extends Error {
  override name = 'StoreLayoutError'

  constructor(found: number) {
    super(
      `The documents in MongoDB have layout ${found}; this release of Sluice has layout ${LAYOUT}. Start the release that stored them, ` +
        'or name an empty database in MONGODB_URL (docs/operate/backup.md#upgrade).',
    )
  }
}

/**
 * Returns whether the database has this release's layout number. Returns false if it has none.
 * @throws {StoreLayoutError} if it has another number, and the driver's error if MongoDB is
 * unavailable.
 */
export async function checkLayout(db: Db, signal?: AbortSignal): Promise<boolean> {
  const options = { ...PRIMARY, ...(signal && { signal }) }
  const noted = await db.collection<LayoutDocument>('layout', PRIMARY).findOne({ _id: ID }, options)
  if (noted !== null && noted.number !== LAYOUT) throw new StoreLayoutError(noted.number)
  return noted !== null
}

const ANSWER_MS = 10_000

/**
 * A store, for programs and for people. A copy of a database has the same id, so the name is part
 * of the identity.
 */
export interface Store {
  /** Absent until a worker has used the database. */
  id?: string
  database: string
  hosts: string
}

/** The hosts of a connection's URL. */
export function hostsOf({ client }: Db): string {
  return client.options.srvHost ?? client.options.hosts.join(',')
}

/**
 * Reads which store a database is. Reads with majority, because the queue must not learn an id that
 * is rolled back later.
 */
export async function readStore(db: Db, signal = AbortSignal.timeout(ANSWER_MS)): Promise<Store> {
  const options = { ...PRIMARY_MAJORITY, signal } as const
  const found = await db.collection<IdentityDocument>('layout').findOne({ _id: STORE }, options)
  return { ...(found && { id: found.id }), database: db.databaseName, hosts: hostsOf(db) }
}

/**
 * Checks the layout as `checkLayout` does, writes the layout number and the id if the database
 * lacks them, and reads its identity.
 */
export async function registerStore(db: Db): Promise<Store> {
  const signal = AbortSignal.timeout(ANSWER_MS)
  const missing = [
    ...((await checkLayout(db, signal)) ? [] : [{ _id: ID, number: LAYOUT }]),
    ...((await readStore(db, signal)).id === undefined ? [{ _id: STORE, id: randomUUID() }] : []),
  ]
  if (missing.length > 0) {
    const insert = {
      insert: 'layout',
      documents: missing,
      ordered: false,
      writeConcern: { w: 'majority' },
    }
    const { writeErrors } = await db.command(insert, { signal })
    // Another worker was faster.
    if (writeErrors !== undefined) await checkLayout(db, signal)
  }
  return readStore(db, signal)
}

/**
 * Gives the store another id. Processes that use a copy of it under the same name then see another
 * store.
 */
export async function renewStoreId(db: Db): Promise<Store> {
  const first = await readFirstId(db)
  const update = { $set: { id: randomUUID(), ...(first !== undefined && { first }) } }
  await db
    .collection<IdentityDocument>('layout')
    .updateOne({ _id: STORE }, update, { upsert: true })
  // The marks of queues may come from another Redis, or from before a restore.
  await db.collection('layout').updateMany({ mark: { $exists: true } }, { $set: { mark: 0 } })
  return readStore(db)
}

/** Reads the id that a store began with. Backups and copies of the store also have it. */
export async function readFirstId(db: Db): Promise<string | undefined> {
  const found = await db.collection<IdentityDocument>('layout', PRIMARY).findOne({ _id: STORE })
  return found?.first ?? found?.id
}
