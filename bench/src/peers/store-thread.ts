import { type AnyBulkWriteOperation, type Collection, type Db, MongoServerError } from 'mongodb'
import type { PeerDocument, PeerThread } from './documents.ts'

interface Stored extends Record<string, unknown> {
  _id: string
}

/** Writes one thread. */
export type StoreThread = (thread: PeerThread) => Promise<void>

const DUPLICATE_KEY = 11_000

/** One upsert per document, all of a thread's concurrently. */
export function storeByUpserts(db: Db): StoreThread {
  const [sources, quotes] = [db.collection<Stored>('sources'), db.collection<Stored>('quotes')]
  const upsert = (collection: Collection<Stored>, { _id, fields }: PeerDocument) =>
    again(() => collection.updateOne({ _id }, { $set: fields }, { upsert: true }))
  return async ({ source, quotes: documents }) => {
    await Promise.all([
      upsert(sources, source),
      ...documents.map((document) => upsert(quotes, document)),
    ])
  }
}

/**
 * One bulkWrite for a thread's quotes, concurrent with the upsert of its source: no command of
 * MongoDB before 8.0 writes to two collections.
 */
export function storeByBulkWrite(db: Db): StoreThread {
  const [sources, quotes] = [db.collection<Stored>('sources'), db.collection<Stored>('quotes')]
  return async ({ source, quotes: documents }) => {
    await Promise.all([
      again(() =>
        sources.updateOne({ _id: source._id }, { $set: source.fields }, { upsert: true }),
      ),
      documents.length > 0 &&
        again(() => quotes.bulkWrite(documents.map(upsertOf), { ordered: false })),
    ])
  }
}

function upsertOf({ _id, fields }: PeerDocument): AnyBulkWriteOperation<Stored> {
  return { updateOne: { filter: { _id }, update: { $set: fields }, upsert: true } }
}

/** Of two concurrent upserts of one new document, one is refused; its retry finds the document. */
async function again<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (error instanceof MongoServerError && error.code === DUPLICATE_KEY) return write()
    throw error
  }
}
