// A queue feeds one store: it remembers which one, and processes of another store stop
// (docs/adr/0023-identity-and-marks.md).
import type { Overview } from '@sluice/contract'
import { openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import type { QueueKeys } from './job/lanes.ts'

/** The store of a process, as `readStore` of the package `store` returns it. */
interface Store {
  id?: string
  database: string
  hosts: string
}

/** A process uses another store than its queue feeds. */
export class OtherStoreError extends Error {
  override name = 'OtherStoreError'
}

/** Names a store for people. Ids distinguish a database that was created again, or copied, under the same name. */
export function nameOf({ id, database, hosts }: Store): string {
  return `${database} at ${hosts} (${id === undefined ? 'without an id' : `id ${id.slice(0, 8)}`})`
}

/** Reads which store a queue feeds. Undefined if no worker has ever worked on the queue. */
export async function readFedStore(redis: Redis, { base }: QueueKeys): Promise<Store | undefined> {
  const text = await redis.get(`${base}store`)
  return text === null ? undefined : JSON.parse(text)
}

/** Makes a queue feed this store from now on. */
export async function feedStore(redis: Redis, { base }: QueueKeys, store: Store): Promise<void> {
  await redis.set(`${base}store`, JSON.stringify(store))
}

/**
 * Returns whether a queue feeds this store. `claims`: makes it so if the queue feeds none, as the first worker does.
 *
 * @throws {OtherStoreError} if it feeds another one.
 */
export async function checkFedStore(redis: Redis, keys: QueueKeys, own: Store, claims: boolean): Promise<boolean> {
  let fed = await readFedStore(redis, keys)
  if (fed === undefined && claims && own.id !== undefined) {
    await openScript(redis, new URL('./claim-store.lua', import.meta.url))(keys.base, JSON.stringify(own))
    // Another worker may have been faster.
    fed = await readFedStore(redis, keys)
  }
  if (fed !== undefined && (fed.id !== own.id || fed.database !== own.database))
    throw new OtherStoreError(
      `The queue ${keys.queues.interactive} feeds the store ${nameOf(fed)}, and MONGODB_URL names ${nameOf(own)}. Correct MONGODB_URL or ` +
        'QUEUE. If the store was moved or restored, stop all processes and run `sluice doctor --after-restore` (docs/operate/mongodb.md#one-queue-one-store).',
    )
  return fed !== undefined
}

/** For this time, the verdict names a process that stopped because of its store: longer than the pause of a crash loop. */
const NOTED_SECONDS = 360

/** Notes for the verdict that a process stops because of its store. Without a process, removes the note. */
export async function noteOtherStore(redis: Redis, { base }: QueueKeys, by?: Overview['otherStore']): Promise<void> {
  const key = `${base}other-store`
  await (by === undefined ? redis.del(key) : redis.set(key, JSON.stringify(by), 'EX', NOTED_SECONDS))
}
