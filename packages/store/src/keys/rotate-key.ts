import type { Db } from 'mongodb'
import { createKey } from './create-key.ts'
import { CALL_MS, keyCollection } from './key-collection.ts'
import { InvalidKeyDetailError } from './key-errors.ts'
import type { NewKey } from './key-record.ts'
import { listKeys } from './list-keys.ts'
import { pickKey } from './pick-key.ts'

const LONGEST_OVERLAP_SECONDS = 366 * 24 * 3_600

/**
 * Makes a new key of the same tenant and name as the one meant by `reference` (a name or the beginning of an id), which
 * goes on working for the overlap, or until its own end where that is earlier. A name means the key that is not yet
 * replaced. Throws UnknownKeyError, AmbiguousKeyError, and InvalidKeyDetailError for an overlap that is none.
 */
export async function rotateKey(
  db: Db,
  reference: string,
  { overlapSeconds }: { overlapSeconds: number },
): Promise<NewKey> {
  if (!(overlapSeconds >= 0 && overlapSeconds <= LONGEST_OVERLAP_SECONDS)) {
    throw new InvalidKeyDetailError('The overlap is not between 0 seconds and 366 days.')
  }
  const now = Date.now()
  const current = (await listKeys(db)).filter(({ replacedBy }) => replacedBy === undefined)
  const { id, tenant, name } = pickKey(current, reference, now)

  // The new key stands before the old one is given an end: a crash between the two leaves a key too many, never none.
  const created = await createKey(db, { tenant, name })
  await keyCollection(db).updateOne(
    { _id: id },
    // $min takes the end that is there where it is the earlier one, also one that was set since the read.
    { $min: { expiresAt: new Date(now + overlapSeconds * 1_000) }, $set: { replacedBy: created.record.id } },
    { maxTimeMS: CALL_MS },
  )
  return created
}
