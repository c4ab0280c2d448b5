// Defines an API key: its text, the record that is stored instead of the text, and the queries on
// records.
import { randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Collection, Db } from 'mongodb'

/**
 * An importer posts and reads threads of one tenant. An operator handles failed jobs of all
 * tenants. A viewer only sees them.
 */
export const KEY_ROLES = ['importer', 'operator', 'viewer'] as const

export type KeyRole = (typeof KEY_ROLES)[number]

export interface KeyLimits {
  readonly quotesPerSecond: number
  readonly burstQuotes: number
}

/** The stored record of a key. The key itself is not stored anywhere. */
export interface KeyRecord {
  /** See `keyHash`. */
  readonly id: string
  readonly role: KeyRole
  /** Empty unless the role is importer. No tenant can have the empty name. */
  readonly tenant: string
  readonly name: string
  /** Whether an importer's key may delete. An operator's key always may, a viewer's key never. */
  readonly deletes?: true | undefined
  /** Absent if the default limits apply. */
  readonly limits?: KeyLimits | undefined
  readonly createdAt: Date
  readonly expiresAt?: Date | undefined
  /** Accurate to a minute. */
  readonly lastUsedAt?: Date
  readonly revokedAt?: Date
  /** The id of the key that a rotation created to replace this one. */
  readonly replacedBy?: string
}

/** A key that works. */
export interface KnownKey extends Pick<KeyRecord, 'role' | 'tenant' | 'limits' | 'deletes'> {
  readonly outcome: 'known'
  /** The beginning of the key's id. The id is a hash, so the key can't be derived from it. */
  readonly keyId: string
}

/**
 * A key without rights. The other fields say to whom it belonged, if that is known. `gone`: the key
 * worked earlier, but its record was deleted.
 */
export interface RefusedKey extends Partial<Pick<KnownKey, 'keyId' | 'tenant'>> {
  readonly outcome: 'unknown'
  readonly why?: 'revoked' | 'expired' | 'gone'
}

/** A key with its rights, a key without rights, or neither, because MongoDB is unavailable. */
export type KeyCheck = KnownKey | RefusedKey | { readonly outcome: 'unavailable' }

/** The queries of a keyring. Both reject soon if MongoDB is unavailable. */
export interface KeyAccess {
  /** Returns the records that exist for these ids, in any order. */
  findKeys(ids: readonly string[]): Promise<KeyRecord[]>
  /** Stores when keys were last used. An earlier time never replaces a later one. */
  touchKeys(uses: ReadonlyMap<string, Date>): Promise<void>
}

type KeyDocument = Omit<KeyRecord, 'id'> & { readonly _id: string }

const PREFIX = 'slc_'
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

// 30 digits of base 62 have 178 bits. Six digits are enough for any CRC-32 (62 ** 6 > 2 ** 32).
const RANDOM_LENGTH = 30
const CHECKSUM_LENGTH = 6
const SHAPE = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`)

export const KEY_LENGTH = PREFIX.length + RANDOM_LENGTH + CHECKSUM_LENGTH

/**
 * Callers wait for a lookup, so it fails after this time. If MongoDB needs seconds, it still counts
 * as slow, not as unavailable, as it does for workers.
 */
export const FIND_MS = 5_000
const TOUCH_MS = 5_000

/** Creates a key's text. Its checksum exposes a typing error without a lookup. */
export function newKeyText(): string {
  const digits = Array.from({ length: RANDOM_LENGTH }, () => DIGITS[randomInt(DIGITS.length)])
  const start = PREFIX + digits.join('')
  return start + checksum(start)
}

/**
 * Returns whether a text can be a key. Detects all typing errors of one character, and nearly all
 * others.
 */
export function isWellFormedKey(text: string): boolean {
  if (text.length !== KEY_LENGTH || !SHAPE.test(text)) return false
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH)
}

/**
 * Returns the collection of keys. Ignores the read preference and the write concern of the URL:
 * reads from the primary, because the next lookup must see a revocation, and writes to a majority,
 * because a failover must not undo one.
 */
export function keyCollection(db: Db): Collection<KeyDocument> {
  return db.collection<KeyDocument>('keys', {
    readPreference: 'primary',
    writeConcern: { w: 'majority' },
  })
}

/** Returns whether a key is neither revoked nor expired at `now`. */
export function isUsable(
  { expiresAt, revokedAt }: Pick<KeyRecord, 'expiresAt' | 'revokedAt'>,
  now: number,
): boolean {
  return revokedAt === undefined && (expiresAt === undefined || expiresAt.getTime() > now)
}

/** Returns the beginning of a key's id, by which commands and logs distinguish keys. */
export function shortKeyId(id: string): string {
  return id.slice(0, 12)
}

export function toRecord({ _id, ...rest }: KeyDocument): KeyRecord {
  return { id: _id, ...rest }
}

/**
 * Returns a keyring's queries on a database. They have their own time limits, because the client's
 * are longer.
 */
export function keyAccess(db: Db, findMs = FIND_MS): KeyAccess {
  const keys = keyCollection(db)
  return {
    findKeys: async (ids) => {
      // Only the signal ends a query to a server that has stopped responding, because the driver
      // ignores `timeoutMS` here. The batch size puts all records into the first reply (the default
      // is 101 records).
      const options = {
        signal: AbortSignal.timeout(findMs),
        maxTimeMS: findMs,
        batchSize: ids.length + 1,
      }
      return (await keys.find({ _id: { $in: [...ids] } }, options).toArray()).map(toRecord)
    },
    touchKeys: async (uses) => {
      // $max, because replicas write in any order, and their clocks differ.
      const updates = Array.from(uses, ([_id, at]) => ({
        q: { _id },
        u: { $max: { lastUsedAt: at } },
      }))
      const command = {
        update: keys.collectionName,
        updates,
        ordered: false,
        writeConcern: { w: 1 },
      }
      const options = { readPreference: 'primary', signal: AbortSignal.timeout(TOUCH_MS) } as const
      const { writeErrors = [] } = await db.command(command, options)
      if (writeErrors.length > 0) throw new Error(writeErrors[0].errmsg)
    },
  }
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let digit = 0; digit < CHECKSUM_LENGTH; digit++) {
    digits = DIGITS[rest % DIGITS.length] + digits
    rest = Math.floor(rest / DIGITS.length)
  }
  return digits
}
