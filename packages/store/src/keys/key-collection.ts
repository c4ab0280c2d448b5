import type { Collection, Db } from 'mongodb'
import type { KeyRecord } from './key-record.ts'

/** A record as it lies in MongoDB. */
export type KeyDocument = Omit<KeyRecord, 'id'> & { readonly _id: string }

/** The longest that the server may work on one of an operator's own calls, in milliseconds. */
export const CALL_MS = 10_000

/**
 * Where the keys lie. Always read from the primary and written to a majority, whatever the URL says: a revocation must
 * be seen by the very next look-up, and must not be undone by a failover.
 */
export function keyCollection(db: Db): Collection<KeyDocument> {
  return db.collection<KeyDocument>('keys', { readPreference: 'primary', writeConcern: { w: 'majority' } })
}

/** The record in a document. */
export function toRecord({ _id, ...rest }: KeyDocument): KeyRecord {
  return { id: _id, ...rest }
}
