import type { Db } from 'mongodb'
import { CALL_MS, keyCollection, toRecord } from './key-collection.ts'
import type { KeyRecord } from './key-record.ts'

/** All keys, or those of one tenant, with the revoked and the expired: the oldest first. */
export async function listKeys(db: Db, tenant?: string): Promise<KeyRecord[]> {
  const documents = await keyCollection(db)
    .find(tenant === undefined ? {} : { tenant }, { signal: AbortSignal.timeout(CALL_MS) })
    .toArray()
  // Sorted here: an operator's keys are few, and the store keeps to the plainest subset of MongoDB.
  return documents.map(toRecord).sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1))
}
