// Entry point `@sluice/store/suppressions`: the keyed hashes by which speakers are recorded and
// recognised without their names, and the list of suppressions, each of a speaker whose quotes are
// stored as redacted.
import { hash, randomBytes } from 'node:crypto'
import type { Db } from 'mongodb'
import type { SuppressedSpeakers } from './documents.ts'
import { AFTER_IDS, listPrefixOf } from './ids.ts'
import { PRIMARY_MAJORITY } from './mongodb/commands.ts'
import { NOBODY, withinTime } from './read-source.ts'

/** The id of the key's document. */
const KEY = 'speakers'
type KeyDocument = { _id: string; key: string }

/**
 * Reads the key of the hashes of speakers. The first reader makes it. @throws {CommandFailedError}
 */
export async function readKey(db: Db): Promise<string> {
  const keys = db.collection<KeyDocument>('layout', PRIMARY_MAJORITY)
  const read = () => withinTime(NOBODY, (signal) => keys.findOne({ _id: KEY }, { signal }))
  const found = await read()
  if (found !== null) return found.key
  await restoreKey(db, randomBytes(32).toString('base64url'))
  const { key } = (await read()) ?? {}
  if (key === undefined) throw new Error('the key of speakers was not stored')
  return key
}

/** Stores the key, unless there is one. */
export async function restoreKey(db: Db, key: string): Promise<void> {
  const keys = db.collection<KeyDocument>('layout')
  const options = { upsert: true, writeConcern: { w: 'majority' } } as const
  await withinTime(NOBODY, () => keys.updateOne({ _id: KEY }, { $setOnInsert: { key } }, options))
}

/**
 * Returns a name in the form in which names are compared: in the Unicode form NFC, without white
 * space around it. Case counts.
 */
export const speakerName = (speaker: string) => speaker.normalize('NFC').trim()

/**
 * Returns the hash by which a tenant's speaker is recorded and recognised. An HMAC would take twice
 * as long, and slow posts down where speakers are suppressed. The hash is cut, so nobody can extend
 * it.
 */
export function hashSpeaker(key: string, tenant: string, speaker: string): string {
  const name = JSON.stringify([tenant, speakerName(speaker)])
  return hash('sha256', key + name, 'base64url').slice(0, 24)
}

/** Bounds the memory of `createHashOf`, because a tenant may have millions of speakers. */
const MOST_HASHES = 10_000

/** Makes a function that hashes speakers, each different one rarely more than once. */
export function createHashOf(key: string, tenant: string) {
  const hashes = new Map<string, string>()
  return (speaker: string): string => {
    const hash = hashes.get(speaker) ?? hashSpeaker(key, tenant, speaker)
    if (hashes.size === MOST_HASHES) hashes.clear()
    hashes.set(speaker, hash)
    return hash
  }
}

/** Each worker has the list in memory: about 7 MB for this number. */
const MOST = 100_000
const MAJORITY = { writeConcern: { w: 'majority' } } as const

export interface Suppression {
  /** The hash of the speaker: see `hashSpeaker`. */
  speaker: string
  /** Present if the speaker is suppressed only in threads of this service. */
  service?: string
  /** The id of the key. */
  by: string
  at: Date
  /** The id of the erasure that opened it. */
  erasure: string
}

type SuppressionDocument = Suppression & { _id: string; tenant: string }

const documentsIn = (db: Db) => db.collection<SuppressionDocument>('suppressions', PRIMARY_MAJORITY)

/** Returns the id of a suppression, which is unique within its tenant. */
export const suppressionIdOf = ({ speaker, service }: Pick<Suppression, 'speaker' | 'service'>) =>
  service === undefined ? speaker : `${speaker}.${service}`

/** Returns the filter for suppressions of a tenant whose ids are after this one. */
function after(tenant: string, id: string) {
  const prefix = listPrefixOf(tenant)
  return { _id: { $gt: prefix + id, $lt: prefix + AFTER_IDS } }
}

/**
 * Adds a suppression, or replaces the same one. Returns false if the tenant has `MOST` of them.
 * After a change, call `noteSuppressions` before you answer.
 * @throws {CommandFailedError}
 */
export async function addSuppression(db: Db, tenant: string, added: Suppression): Promise<boolean> {
  const count = await withinTime(NOBODY, (signal) =>
    documentsIn(db).countDocuments(after(tenant, ''), { signal }),
  )
  if (count >= MOST) return false
  const _id = listPrefixOf(tenant) + suppressionIdOf(added)
  const options = { upsert: true, ...MAJORITY }
  await withinTime(NOBODY, () => documentsIn(db).replaceOne({ _id }, { ...added, tenant }, options))
  return true
}

/** Returns whether a tenant has this suppression. @throws {CommandFailedError} */
export async function hasSuppression(db: Db, tenant: string, id: string): Promise<boolean> {
  const _id = listPrefixOf(tenant) + id
  const found = await withinTime(NOBODY, (signal) => documentsIn(db).findOne({ _id }, { signal }))
  return found !== null
}

/**
 * Removes a suppression. Returns whether there was one. Call `noteSuppressions` before you answer.
 * @throws {CommandFailedError}
 */
export async function removeSuppression(db: Db, tenant: string, id: string): Promise<boolean> {
  const _id = listPrefixOf(tenant) + id
  const removed = await withinTime(NOBODY, () => documentsIn(db).deleteOne({ _id }, MAJORITY))
  return removed.deletedCount > 0
}

/**
 * Removes all suppressions of a tenant.
 * @param until leaves those that were opened later.
 * @throws {CommandFailedError}
 */
export async function removeSuppressions(db: Db, tenant: string, until?: Date): Promise<void> {
  const filter = { ...after(tenant, ''), ...(until && { at: { $lte: until } }) }
  await withinTime(NOBODY, () => documentsIn(db).deleteMany(filter, MAJORITY))
}

/** Lists suppressions of a tenant in the order of their ids. @throws {CommandFailedError} */
export async function listSuppressions(db: Db, tenant: string, id: string, limit: number) {
  const found = await withinTime(NOBODY, (signal) =>
    documentsIn(db)
      // The hint: the emulator sorts all of a tenant's suppressions for a page without it.
      .find(after(tenant, id), { sort: { _id: 1 }, hint: { _id: 1 }, limit, signal })
      .toArray(),
  )
  return found.map(({ _id, tenant, ...one }) => ({ id: suppressionIdOf(one), ...one }))
}

/** The suppressions of all tenants, as workers have them in memory. */
export interface SuppressedIds {
  key: string
  /** The ids of each tenant's suppressions. */
  idsOf: ReadonlyMap<string, ReadonlySet<string>>
}

/** Reads the list with majority. @throws {CommandFailedError} */
export async function readSuppressions(db: Db): Promise<SuppressedIds> {
  const idsOf = new Map<string, Set<string>>()
  await withinTime(NOBODY, async (signal) => {
    const projection = { _id: 0, tenant: 1, speaker: 1, service: 1 }
    for await (const one of documentsIn(db).find({}, { projection, signal })) {
      const ids = idsOf.get(one.tenant) ?? new Set()
      idsOf.set(one.tenant, ids.add(suppressionIdOf(one)))
    }
  })
  return { key: idsOf.size === 0 ? '' : await readKey(db), idsOf }
}

/** Returns the suppressions of a tenant, or undefined if it has none. */
export function suppressionsOf(
  { key, idsOf }: SuppressedIds,
  tenant: string,
): SuppressedSpeakers | undefined {
  const ids = idsOf.get(tenant)
  if (ids === undefined) return undefined
  return {
    hashOf: createHashOf(key, tenant),
    has: (speaker, service) => ids.has(speaker) || ids.has(suppressionIdOf({ speaker, service })),
  }
}
