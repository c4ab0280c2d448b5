import type { Db } from 'mongodb'
import { CALL_MS, keyCollection } from './key-collection.ts'
import type { KeyRecord } from './key-record.ts'
import { listKeys } from './list-keys.ts'
import { pickKey } from './pick-key.ts'

/**
 * Ends the live key meant by `reference` (a name or the beginning of an id), for good; no replica takes it 5 s later.
 * Throws UnknownKeyError, and AmbiguousKeyError also where an overlap leaves two keys of a name: which one is to go is
 * for the operator to say.
 */
export async function revokeKey(db: Db, reference: string): Promise<KeyRecord> {
  const revokedAt = new Date()
  const record = pickKey(await listKeys(db), reference, revokedAt.getTime())
  // $min, so that of two revocations at once the first one's time stays.
  await keyCollection(db).updateOne({ _id: record.id }, { $min: { revokedAt } }, { maxTimeMS: CALL_MS })
  return { ...record, revokedAt }
}
