// A queue feeds one store and remembers which one. A process of another store stops
// (docs/adr/0023-identity-and-marks.md). After the store was restored from a backup, the queue
// forgets its answers about stored threads.
import type { Status } from '@sluice/contract'
import { openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import { jobKeysIn, type QueueKeys, walkKeys } from './job/lanes.ts'

/** The store of a process, as `readStore` of the package `store` returns it. */
interface Store {
  id?: string
  database: string
  hosts: string
}

/** A process uses another store than the one that its queue feeds. */
export class OtherStoreError extends Error {
  override name = 'OtherStoreError'
}

/**
 * Names a store for people. The id distinguishes it from a database that was created again or
 * copied under the same name.
 */
export function nameOf({ id, database, hosts }: Store): string {
  return `${database} at ${hosts} (${id === undefined ? 'without an id' : `id ${id.slice(0, 8)}`})`
}

/** Reads which store a queue feeds. Returns undefined if no worker has ever used the queue. */
export async function readFedStore(redis: Redis, { base }: QueueKeys): Promise<Store | undefined> {
  const text = await redis.get(`${base}store`)
  return text === null ? undefined : JSON.parse(text)
}

/** Makes a queue feed this store from now on. */
export async function feedStore(redis: Redis, { base }: QueueKeys, store: Store): Promise<void> {
  await redis.set(`${base}store`, JSON.stringify(store))
}

/**
 * Returns whether a queue feeds this store. If the queue feeds none yet and `claims` is set, makes
 * it feed this one, as the first worker does.
 *
 * @throws {OtherStoreError} if it feeds another store.
 */
export async function checkFedStore(
  redis: Redis,
  keys: QueueKeys,
  own: Store,
  claims: boolean,
): Promise<boolean> {
  let fed = await readFedStore(redis, keys)
  if (fed === undefined && claims && own.id !== undefined) {
    await openScript(redis, new URL('./claim-store.lua', import.meta.url))(
      keys.base,
      JSON.stringify(own),
    )
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

/**
 * The verdict names a process that stopped because of its store for this time. It is longer than
 * the pause of a crash loop.
 */
const NOTED_SECONDS = 360

/**
 * Writes a note for the verdict that a process stops because of its store. Without a process,
 * removes the note.
 */
export async function noteOtherStore(
  redis: Redis,
  { base }: QueueKeys,
  by?: Status['otherStore'],
): Promise<void> {
  const key = `${base}other-store`
  await (by === undefined
    ? redis.del(key)
    : redis.set(key, JSON.stringify(by), 'EX', NOTED_SECONDS))
}

/** The results of a failed job, and of one that was retried since. */
const JOB_ANSWERS = ['failure', 'resultBefore'] as const

/**
 * Keys of claims, results, replies and imports. The list of recently completed jobs stays: it shows
 * what to post again.
 */
const ANSWERS = /^(claims?|results|newest-results|transient|retained|replies|imports?)(:|$)/

/**
 * Removes the answers about stored threads after MongoDB was restored to an earlier moment, and
 * returns the number of removed keys. Failed jobs and waiting jobs stay, and a retry then stores
 * all of their threads. No process may answer or complete jobs while this runs. If it is
 * interrupted, call it again.
 */
export async function forgetAnswers(redis: Redis, queue: QueueKeys): Promise<number> {
  const { base, jobs } = queue
  // BullMQ's events, whose reasons may quote a text.
  let removed = await redis.unlink(Object.values(jobs).map((lane) => `${lane}events`))
  for await (const keys of walkKeys(redis, queue)) {
    const answers = keys.filter(
      (key) => key.startsWith(base) && ANSWERS.test(key.slice(base.length)),
    )
    if (answers.length > 0) removed += await redis.unlink(answers)
    await Promise.all(jobKeysIn(queue, keys).map((key) => redis.hdel(key, ...JOB_ANSWERS)))
  }
  return removed
}

/** Removes the claims, retained results and imports of a tenant. */
export async function forgetTenant(redis: Redis, { base }: QueueKeys, tenant: string) {
  const forget = openScript(redis, new URL('./forget-tenant.lua', import.meta.url))
  while ((await forget(base, tenant)) === 1);
}
