import type { Db } from 'mongodb'
import { CALL_MS, keyCollection } from './key-collection.ts'
import { InvalidKeyDetailError } from './key-errors.ts'
import type { KeyRecord, NewKey } from './key-record.ts'
import { keyHash, newKeyText } from './key-text.ts'

const NAME_LENGTH = 200

/**
 * Makes a key of a tenant and stores its hash; the answer is the only place where the key itself ever stands. Throws
 * InvalidKeyDetailError for a tenant or name that is blank, too long or not plain text, and for an end that has passed.
 */
export async function createKey(
  db: Db,
  { tenant, name, expiresAt }: { tenant: string; name: string; expiresAt?: Date },
): Promise<NewKey> {
  checkName('tenant', tenant)
  checkName('name', name)
  const createdAt = new Date()
  if (expiresAt !== undefined) checkEnd(expiresAt, createdAt)

  const key = newKeyText()
  const details = { tenant, name, createdAt, ...(expiresAt !== undefined && { expiresAt }) }
  const record: KeyRecord = { id: keyHash(key), ...details }
  await keyCollection(db).insertOne({ _id: record.id, ...details }, { maxTimeMS: CALL_MS })
  return { key, record }
}

function checkName(what: 'tenant' | 'name', text: string): void {
  if (text.trim() === '') throw new InvalidKeyDetailError(`The ${what} is blank.`)
  if ([...text].length > NAME_LENGTH) {
    throw new InvalidKeyDetailError(`The ${what} has over ${NAME_LENGTH} characters.`)
  }
  // Two tenants that look the same on a screen would be two; control characters would steer the terminal that lists them.
  if (text !== text.trim() || /\p{C}/u.test(text)) {
    throw new InvalidKeyDetailError(`The ${what} has control characters, or white space around it.`)
  }
}

function checkEnd(expiresAt: Date, now: Date): void {
  if (!(expiresAt > now)) throw new InvalidKeyDetailError('The key would have expired already, or its end is no date.')
}
