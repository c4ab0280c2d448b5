// Entry point `@sluice/credentials/keys`: creates, lists, limits, rotates and revokes keys, and
// exports the keyring.
import type { Db } from 'mongodb'
import type { KeyLimits, KeyRecord, KeyRole } from './key.ts'
import { FIND_MS, isUsable, keyCollection, newKeyText, shortKeyId, toRecord } from './key.ts'
import { keyHash } from './keyring.ts'

export type {
  KeyAccess,
  KeyCheck,
  KeyLimits,
  KeyRecord,
  KeyRole,
  KnownKey,
  RefusedKey,
} from './key.ts'
export { isWellFormedKey, KEY_ROLES, keyAccess, keyCollection, shortKeyId } from './key.ts'
export { createKeyring, type Keyring, keyHash } from './keyring.ts'

export interface NewKey {
  readonly key: string
  readonly record: KeyRecord
}

/** Only an importer may have limits, because other roles post nothing. */
interface NewKeyDetails extends Pick<KeyRecord, 'name' | 'deletes' | 'limits' | 'expiresAt'> {
  /** Default: importer. */
  readonly role?: KeyRole
  /** Required for an importer, refused for other roles. */
  readonly tenant?: string | undefined
}

/** The details of a key, or the reference to one, are refused. The message says what to change. */
export class KeyRefusedError extends Error {
  override readonly name = 'KeyRefusedError'
}

const NAME_LENGTH = 200
const HIGHEST_LIMIT = 1_000_000_000
const LONGEST_OVERLAP_SECONDS = 366 * 24 * 3_600
// The time limit of one command.
const COMMAND_MS = 10_000
// A reference with fewer digits could be a name.
const ID_PREFIX = /^[0-9a-f]{6,64}$/

/**
 * Creates a key and stores its hash. Only the return value contains the key itself. If two calls
 * with the same name are simultaneous, both may succeed. Keys without a tenant count as keys of one
 * tenant.
 *
 * @throws {KeyRefusedError} if a detail is refused, or a live key of the same tenant has this name.
 */
export async function createKey(db: Db, details: NewKeyDetails): Promise<NewKey> {
  checkDetails(details)
  const { tenant = '', name } = details
  const sameName = (await listKeys(db, tenant)).find(
    (record) => record.name === name && isUsable(record, Date.now()),
  )
  if (sameName !== undefined) {
    const owner = tenant === '' ? `Another ${sameName.role}` : `The tenant ${tenant}`
    const named = `${owner} has a key named ${JSON.stringify(name)} that works (${shortKeyId(sameName.id)})`
    throw new KeyRefusedError(`${named}. Choose another name, or rotate that key.`)
  }
  return insertKey(db, details)
}

function refuseIf(isWrong: boolean, message: string): void {
  if (isWrong) throw new KeyRefusedError(message)
}

function checkDetails({
  role = 'importer',
  tenant,
  name,
  deletes,
  limits,
  expiresAt,
}: NewKeyDetails): void {
  const ofOne = 'The key of an importer needs a tenant: add --tenant NAME.'
  refuseIf(role === 'importer' && tenant === undefined, ofOne)
  const ofAll = 'An operator or viewer is concerned with all tenants, so the key has no tenant.'
  refuseIf(role !== 'importer' && tenant !== undefined, ofAll)
  const ofRole = 'An operator may delete anyway, and a viewer may not.'
  refuseIf(role !== 'importer' && deletes === true, ofRole)
  if (tenant !== undefined) checkName('tenant', tenant)
  checkName('name', name)
  if (limits !== undefined) checkLimits(role, limits)
  const isLate = expiresAt !== undefined && !(expiresAt > new Date())
  refuseIf(isLate, 'The key would have expired already, or its expiry is not a date.')
}

async function insertKey(db: Db, details: NewKeyDetails): Promise<NewKey> {
  const { role = 'importer', tenant = '', name, ...others } = details
  const key = newKeyText()
  const stored = { role, tenant, name, createdAt: new Date(), ...others }
  const record: KeyRecord = { id: keyHash(key), ...stored }
  await keyCollection(db).insertOne(
    { _id: record.id, ...stored },
    { maxTimeMS: COMMAND_MS, ignoreUndefined: true },
  )
  return { key, record }
}

/**
 * Lists all keys, or the keys of one tenant, oldest first. Revoked and expired keys are included.
 */
export async function listKeys(db: Db, tenant?: string): Promise<KeyRecord[]> {
  const documents = await keyCollection(db)
    .find(tenant === undefined ? {} : { tenant }, { signal: AbortSignal.timeout(COMMAND_MS) })
    .toArray()
  // Sort here: there are few keys, and the query must stay within the commands of MongoDB that
  // Sluice needs.
  return documents
    .map(toRecord)
    .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1))
}

/** A key that expires within this time needs a successor soon. */
const EXPIRES_SOON_MS = 7 * 86_400_000
const MOST_EXPIRING = 100

/** Returns whether a key works, expires within a week, and has no successor yet. */
export function expiresSoon(record: KeyRecord, now: number): boolean {
  return (
    keyState(record, now) === 'live' &&
    (record.expiresAt?.getTime() ?? Infinity) < now + EXPIRES_SOON_MS
  )
}

/** Lists at most a hundred keys that expire soon, the soonest first. Rejects after `FIND_MS`. */
export async function listExpiring(db: Db): Promise<KeyRecord[]> {
  const now = Date.now()
  const expiresAt = { $gt: new Date(now), $lt: new Date(now + EXPIRES_SOON_MS) }
  const found = keyCollection(db).find(
    { expiresAt },
    { maxTimeMS: FIND_MS, signal: AbortSignal.timeout(FIND_MS) },
  )
  const records = (await found.toArray()).map(toRecord).filter((record) => expiresSoon(record, now))
  const endOf = ({ expiresAt: end }: KeyRecord) => end?.getTime() ?? Infinity
  return records.sort((one, other) => endOf(one) - endOf(other)).slice(0, MOST_EXPIRING)
}

/**
 * Creates a key with the details of the live key to which `reference` refers by its name, or by the
 * beginning of its id. The old key works until the overlap ends, or until its own expiry if that is
 * earlier.
 *
 * @throws {KeyRefusedError} if `reference` fits no live key or several, if the key was already
 * replaced, or if the overlap or the expiry is out of range.
 */
export async function rotateKey(
  db: Db,
  reference: string,
  {
    overlapSeconds,
    expiresAt: newExpiry,
  }: { overlapSeconds: number; expiresAt?: Date | undefined },
): Promise<NewKey & { readonly replaced: KeyRecord }> {
  const isInRange = overlapSeconds >= 0 && overlapSeconds <= LONGEST_OVERLAP_SECONDS
  refuseIf(!isInRange, 'The overlap is not between 0 seconds and 366 days.')
  const now = Date.now()
  const current = (await listKeys(db)).filter(({ replacedBy }) => replacedBy === undefined)
  const old = pickKey(current, reference, now)
  const { id, role, tenant, name, deletes, limits } = old
  const details = {
    role,
    name,
    tenant: tenant || undefined,
    deletes,
    limits,
    expiresAt: newExpiry ?? old.expiresAt,
  }
  checkDetails(details)

  // Store the new key first, so that the old key still works if the process crashes between the two
  // writes.
  const created = await insertKey(db, details)
  const overlapEnd = new Date(now + overlapSeconds * 1_000)
  // $min keeps an earlier expiry, even if another process has set it after the read.
  const update = { $min: { expiresAt: overlapEnd }, $set: { replacedBy: created.record.id } }
  await keyCollection(db).updateOne({ _id: id }, update, { maxTimeMS: COMMAND_MS })
  const end = old.expiresAt !== undefined && old.expiresAt < overlapEnd ? old.expiresAt : overlapEnd
  return { ...created, replaced: { ...old, expiresAt: end, replacedBy: created.record.id } }
}

/**
 * Revokes the live key to which `reference` refers, or an expired key by its id (the verdict then
 * no longer reports its use as a problem). Every replica that reaches MongoDB refuses the key
 * within 5 s.
 *
 * @throws {KeyRefusedError} if `reference` fits no live key, or several, as it may during the
 * overlap of a rotation.
 */
export async function revokeKey(db: Db, reference: string): Promise<KeyRecord> {
  const revokedAt = new Date()
  const record = pickKey(await listKeys(db), reference, revokedAt.getTime(), true)
  // If two revocations are concurrent, $min keeps the earlier time.
  await keyCollection(db).updateOne(
    { _id: record.id },
    { $min: { revokedAt } },
    { maxTimeMS: COMMAND_MS },
  )
  return { ...record, revokedAt }
}

/**
 * Revokes all keys of a tenant, for all APIs within 5 s.
 * @param until leaves keys that were created later.
 */
export async function revokeKeys(db: Db, tenant: string, until?: Date): Promise<void> {
  const created = until === undefined ? {} : { createdAt: { $lte: until } }
  const filter = { tenant, role: 'importer' as const, ...created }
  const revokedAt = new Date()
  await keyCollection(db).updateMany(filter, { $min: { revokedAt } }, { maxTimeMS: COMMAND_MS })
}

/**
 * Replaces or removes the limits of the live key to which `reference` refers. All replicas apply
 * this within 5 s.
 */
export async function limitKey(
  db: Db,
  reference: string,
  limits: KeyLimits | undefined,
): Promise<KeyRecord> {
  const { limits: _, ...record } = pickKey(await listKeys(db), reference, Date.now())
  refuseIf(record.role !== 'importer', NO_LIMITS)
  if (limits !== undefined) checkLimits(record.role, limits)
  const update = limits === undefined ? { $unset: { limits: 1 as const } } : { $set: { limits } }
  await keyCollection(db).updateOne({ _id: record.id }, update, { maxTimeMS: COMMAND_MS })
  return { ...record, limits }
}

const NO_LIMITS = 'Only an importer posts, so the key has no limits.'

function checkLimits(role: KeyRole, limits: KeyLimits): void {
  refuseIf(role !== 'importer', NO_LIMITS)
  for (const quotes of [limits.quotesPerSecond, limits.burstQuotes]) {
    const isInRange = quotes >= 1 && quotes <= HIGHEST_LIMIT && Number.isInteger(quotes)
    refuseIf(!isInRange, `A limit is not a whole number from 1 to ${HIGHEST_LIMIT}.`)
  }
}

function checkName(field: 'tenant' | 'name', text: string): void {
  refuseIf(text.trim() === '', `The ${field} is blank.`)
  refuseIf([...text].length > NAME_LENGTH, `The ${field} has over ${NAME_LENGTH} characters.`)
  // Two different tenants could look the same on a screen, and control characters could steer the
  // operator's terminal.
  const isHidden = text !== text.trim() || /\p{C}/u.test(text)
  refuseIf(isHidden, `The ${field} has control characters, or white space around it.`)
}

/**
 * Picks the only live key with this name or, if no key has this name, with this beginning of its
 * id.
 * @param mayBeExpired an expired key may be picked as well, by its id.
 */
function pickKey(
  records: readonly KeyRecord[],
  reference: string,
  now: number,
  mayBeExpired = false,
): KeyRecord {
  const live = records.filter((record) => isUsable(record, now))
  const named = live.filter(({ name }) => name === reference)
  const byId = mayBeExpired ? records.filter(({ revokedAt }) => revokedAt === undefined) : live
  const withId = ID_PREFIX.test(reference) ? byId.filter(({ id }) => id.startsWith(reference)) : []
  const candidates = named.length > 0 ? named : withId
  const [first, ...others] = candidates
  if (first === undefined)
    throw new KeyRefusedError(`No live key has the name or id ${JSON.stringify(reference)}.`)
  if (others.length === 0) return first
  const lines = candidates.map((key) => `\n  ${describeCandidate(key, now)}`)
  throw new KeyRefusedError(
    `Several keys go by ${JSON.stringify(reference)}; name one by its id:${lines.join('')}`,
  )
}

function describeCandidate(key: KeyRecord, now: number): string {
  const { id, role, tenant, name, createdAt, expiresAt } = key
  const end = expiresAt === undefined ? '' : `, until ${expiresAt.toISOString()}`
  const state = `${keyState(key, now)}${end}, created ${createdAt.toISOString()}`
  return [shortKeyId(id), tenant || role, name, state].join('  ')
}

/**
 * Returns the state of a key at `now` (ms since 1970). A key in the state `replaced` works until
 * the overlap of its rotation ends.
 */
export function keyState(
  record: KeyRecord,
  now: number,
): 'live' | 'replaced' | 'expired' | 'revoked' {
  if (record.revokedAt !== undefined) return 'revoked'
  if (!isUsable(record, now)) return 'expired'
  return record.replacedBy === undefined ? 'live' : 'replaced'
}
