// Entry point `@sluice/store/speakers`: the keyed hashes by which speakers are recorded and
// recognised without their names.
import { hash, randomBytes } from 'node:crypto'
import type { Db } from 'mongodb'
import { PRIMARY_MAJORITY } from './mongodb/commands.ts'
import { NOBODY, withinTime } from './read-source.ts'

const _id = 'speakers'
type KeyDocument = { _id: string; key: string }

/**
 * Reads the key of the hashes of speakers. The first reader makes it. @throws {CommandFailedError}
 */
export async function readKey(db: Db): Promise<string> {
  const keys = db.collection<KeyDocument>('layout', PRIMARY_MAJORITY)
  const read = () => withinTime(NOBODY, (signal) => keys.findOne({ _id }, { signal }))
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
  await withinTime(NOBODY, () => keys.updateOne({ _id }, { $setOnInsert: { key } }, options))
}

/**
 * Returns the hash by which a tenant's speaker is recorded and recognised. Names are equal if they
 * have the same characters in the Unicode form NFC, without white space around them. Case counts.
 * An HMAC takes twice as long, which posts of suppressed speakers would feel. As the hash is cut,
 * nobody can extend it.
 */
export function hashSpeaker(key: string, tenant: string, speaker: string): string {
  const name = JSON.stringify([tenant, speaker.normalize('NFC').trim()])
  return hash('sha256', key + name, 'base64url').slice(0, 24)
}

/** Makes a function that hashes speakers, each different one once. */
export function createHashOf(key: string, tenant: string) {
  const hashes = new Map<string, string>()
  return (speaker: string): string => {
    const hash = hashes.get(speaker) ?? hashSpeaker(key, tenant, speaker)
    hashes.set(speaker, hash)
    return hash
  }
}
