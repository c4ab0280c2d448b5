/** The entry point `@sluice/store/keys`: creates, lists, limits, rotates and revokes keys, and exports the keyring. */
import type { Db } from 'mongodb'
import {
  isLive,
  type KeyLimits,
  type KeyRecord,
  type KeyRole,
  keyCollection,
  keyState,
  newKeyText,
  shortKeyId,
  toRecord,
} from './key.ts'
import { keyHash } from './keyring.ts'

export type { KeyAccess, KeyCheck, KeyLimits, KeyRecord, KeyRole, KnownKey } from './key.ts'
export { isWellFormedKey, keyAccess, keyState, shortKeyId } from './key.ts'
export { createKeyring, type Keyring } from './keyring.ts'

/** A new key. Its text is stored nowhere. */
export interface NewKey {
  readonly key: string
  readonly record: KeyRecord
}

/** The details of a new key, as an operator chooses them. */
export interface NewKeyDetails {
  readonly name: string
  /** 'importer' if it is absent. */
  readonly role?: KeyRole
  /** Required for an importer, refused for an operator. */
  readonly tenant?: string
  /** Refused for an operator, because operators post nothing. */
  readonly limits?: KeyLimits
  readonly expiresAt?: Date
}

/**
 * The details of a key are invalid, its name is in use, or its reference names no live key or several. The message says
 * what to change.
 */
export class KeyRefusedError extends Error {
  override readonly name = 'KeyRefusedError'
}

const NAME_LENGTH = 200
const HIGHEST_LIMIT = 1_000_000_000
const LONGEST_OVERLAP_SECONDS = 366 * 24 * 3_600
// The server's time limit for one command.
const COMMAND_MS = 10_000
// Five digits or fewer could be meant as a name.
const ID_PREFIX = /^[0-9a-f]{6,64}$/

/**
 * Creates a key and stores its hash. Only the return value contains the key itself. Two calls of one name at the same
 * moment may both succeed.
 *
 * @throws {KeyRefusedError} if the tenant or name is blank, too long or not plain text, a detail does not fit the role,
 * a limit is out of range, `expiresAt` has passed, or a key of the tenant (or of another operator) has this name and
 * works.
 */
export async function createKey(db: Db, details: NewKeyDetails): Promise<NewKey> {
  checkDetails(details)
  const { tenant = '', name } = details
  const sameName = (await listKeys(db, tenant)).find((record) => record.name === name && isLive(record, Date.now()))
  if (sameName !== undefined) {
    const owner = tenant === '' ? 'Another operator' : `The tenant ${tenant}`
    const named = `${owner} has a key named ${JSON.stringify(name)} that works (${shortKeyId(sameName.id)})`
    throw new KeyRefusedError(`${named}. Choose another name, or rotate that key.`)
  }
  return insertKey(db, details)
}

function checkDetails(details: NewKeyDetails): void {
  const { role = 'importer', name, limits, expiresAt } = details
  checkRole(role, details)
  checkName('name', name)
  if (limits !== undefined) checkLimits(limits)
  if (expiresAt !== undefined) checkExpiry(expiresAt, new Date())
}

async function insertKey(db: Db, { expiresAt, ...details }: NewKeyDetails): Promise<NewKey> {
  const { role = 'importer', tenant, name, limits } = details
  const key = newKeyText()
  const stored = {
    role,
    tenant: tenant ?? '',
    name,
    createdAt: new Date(),
    ...(limits !== undefined && { limits }),
    ...(expiresAt !== undefined && { expiresAt }),
  }
  const record: KeyRecord = { id: keyHash(key), ...stored }
  await keyCollection(db).insertOne({ _id: record.id, ...stored }, { maxTimeMS: COMMAND_MS })
  return { key, record }
}

/** Lists all keys, or those of one tenant, oldest first. The list includes revoked and expired keys. */
export async function listKeys(db: Db, tenant?: string): Promise<KeyRecord[]> {
  const documents = await keyCollection(db)
    .find(tenant === undefined ? {} : { tenant }, { signal: AbortSignal.timeout(COMMAND_MS) })
    .toArray()
  // Sorted here: keys are few, and the query stays within the CRUD subset of MongoDB that Sluice needs.
  return documents.map(toRecord).sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1))
}

/**
 * Creates a new key with the role, tenant, name, limits and expiry of the live key that `reference` names (by its name
 * or the beginning of its id). `expiresAt` replaces the expiry. The old key works until the overlap ends, or until its
 * own expiry if that is earlier. A name refers to the key that is not replaced yet.
 *
 * @throws {KeyRefusedError} also for an overlap or an expiry out of range.
 */
export async function rotateKey(
  db: Db,
  reference: string,
  { overlapSeconds, expiresAt: newExpiry }: { overlapSeconds: number; expiresAt?: Date },
): Promise<NewKey & { readonly replaced: KeyRecord }> {
  if (!(overlapSeconds >= 0 && overlapSeconds <= LONGEST_OVERLAP_SECONDS)) {
    throw new KeyRefusedError('The overlap is not between 0 seconds and 366 days.')
  }
  const now = Date.now()
  const current = (await listKeys(db)).filter(({ replacedBy }) => replacedBy === undefined)
  const old = pickKey(current, reference, now)
  const { id, role, tenant, name, limits } = old
  const expiresAt = newExpiry ?? old.expiresAt
  const details = { role, name, ...(tenant && { tenant }), ...(limits && { limits }), ...(expiresAt && { expiresAt }) }
  checkDetails(details)

  // The new key is stored first: after a crash between the two writes, the old key still works.
  const created = await insertKey(db, details)
  const overlapEnd = new Date(now + overlapSeconds * 1_000)
  await keyCollection(db).updateOne(
    { _id: id },
    // $min keeps an earlier expiry, even if another process set that expiry after the read.
    { $min: { expiresAt: overlapEnd }, $set: { replacedBy: created.record.id } },
    { maxTimeMS: COMMAND_MS },
  )
  const end = old.expiresAt !== undefined && old.expiresAt < overlapEnd ? old.expiresAt : overlapEnd
  return { ...created, replaced: { ...old, expiresAt: end, replacedBy: created.record.id } }
}

/**
 * Revokes the live key that `reference` names (by its name or the beginning of its id), for good. After 5 s no replica
 * accepts the key.
 *
 * @throws {KeyRefusedError} also during an overlap, when two live keys have one name: only the operator knows which of
 * them to revoke.
 */
export async function revokeKey(db: Db, reference: string): Promise<KeyRecord> {
  const revokedAt = new Date()
  const record = pickKey(await listKeys(db), reference, revokedAt.getTime())
  // $min keeps the time of the first of two concurrent revocations.
  await keyCollection(db).updateOne({ _id: record.id }, { $min: { revokedAt } }, { maxTimeMS: COMMAND_MS })
  return { ...record, revokedAt }
}

/**
 * Replaces or removes the limits of the live key that `reference` names (by its name or the beginning of its id). Every
 * replica applies them within 5 s.
 *
 * @throws {KeyRefusedError} also for a limit out of range or an operator's key.
 */
export async function limitKey(db: Db, reference: string, limits: KeyLimits | undefined): Promise<KeyRecord> {
  const { limits: _, ...record } = pickKey(await listKeys(db), reference, Date.now())
  if (record.role === 'operator') throw new KeyRefusedError(OPERATOR_LIMITS)
  if (limits !== undefined) checkLimits(limits)
  const update = limits === undefined ? { $unset: { limits: 1 as const } } : { $set: { limits } }
  await keyCollection(db).updateOne({ _id: record.id }, update, { maxTimeMS: COMMAND_MS })
  return { ...record, ...(limits && { limits }) }
}

const OPERATOR_LIMITS = 'An operator posts nothing, so the key has no limits.'

function checkRole(role: KeyRole, { tenant, limits }: Pick<NewKeyDetails, 'tenant' | 'limits'>): void {
  if (role === 'importer' && tenant === undefined) {
    throw new KeyRefusedError('The key of an importer needs a tenant.')
  }
  if (role === 'operator' && tenant !== undefined) {
    throw new KeyRefusedError('An operator handles all tenants, so the key has no tenant.')
  }
  if (role === 'operator' && limits !== undefined) throw new KeyRefusedError(OPERATOR_LIMITS)
  if (tenant !== undefined) checkName('tenant', tenant)
}

function checkLimits(limits: KeyLimits): void {
  for (const quotes of [limits.quotesPerSecond, limits.burstQuotes]) {
    if (!(quotes >= 1 && quotes <= HIGHEST_LIMIT && Number.isInteger(quotes))) {
      throw new KeyRefusedError(`A limit is not a whole number from 1 to ${HIGHEST_LIMIT}.`)
    }
  }
}

function checkName(field: 'tenant' | 'name', text: string): void {
  if (text.trim() === '') throw new KeyRefusedError(`The ${field} is blank.`)
  if ([...text].length > NAME_LENGTH) {
    throw new KeyRefusedError(`The ${field} has over ${NAME_LENGTH} characters.`)
  }
  // Two different tenants could look the same on a screen, and control characters could steer the operator's terminal.
  if (text !== text.trim() || /\p{C}/u.test(text)) {
    throw new KeyRefusedError(`The ${field} has control characters, or white space around it.`)
  }
}

function checkExpiry(expiresAt: Date, now: Date): void {
  if (!(expiresAt > now)) {
    throw new KeyRefusedError('The key would have expired already, or its expiry is not a date.')
  }
}

/**
 * Picks the one live key with this name or, if no key has this name, with this beginning of an id (at least six
 * digits).
 */
function pickKey(records: readonly KeyRecord[], reference: string, now: number): KeyRecord {
  const live = records.filter((record) => isLive(record, now))
  const named = live.filter(({ name }) => name === reference)
  const withId = ID_PREFIX.test(reference) ? live.filter(({ id }) => id.startsWith(reference)) : []
  const candidates = named.length > 0 ? named : withId
  const [first, ...others] = candidates
  if (first === undefined) throw new KeyRefusedError(`No live key has the name or id ${JSON.stringify(reference)}.`)
  if (others.length === 0) return first
  const lines = candidates.map((key) => `  ${describeCandidate(key, now)}`)
  throw new KeyRefusedError(
    [`Several keys go by ${JSON.stringify(reference)}; name one by its id:`, ...lines].join('\n'),
  )
}

function describeCandidate(key: KeyRecord, now: number): string {
  const { id, tenant, name, createdAt, expiresAt } = key
  const end = expiresAt === undefined ? '' : `, until ${expiresAt.toISOString()}`
  const state = `${keyState(key, now)}${end}, created ${createdAt.toISOString()}`
  return [shortKeyId(id), tenant || 'operator', name, state].join('  ')
}
