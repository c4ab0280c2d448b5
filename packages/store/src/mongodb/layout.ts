// Prevents that a release misreads documents or stores them twice
// (docs/adr/0021-layout-of-mongodb.md), and gives the store an identity
// (docs/adr/0023-identity-and-marks.md).
import { randomUUID } from 'node:crypto'
import type { Db } from 'mongodb'
import { PRIMARY, PRIMARY_MAJORITY } from './commands.ts'

/** The number of the documents' layout. ADR 21 says when it rises. */
const LAYOUT = 1

/** The documents of the collection `layout`. */
type LayoutDocument = { _id: typeof ID; number: number }
type IdentityDocument = { _id: typeof STORE; id: string }
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
  const update = { $set: { id: randomUUID() } }
  await db
    .collection<IdentityDocument>('layout')
    .updateOne({ _id: STORE }, update, { upsert: true })
  // The marks of queues may come from another Redis, or from before a restore.
  await db.collection('layout').updateMany({ mark: { $exists: true } }, { $set: { mark: 0 } })
  return readStore(db)
}
