// Opens, lists and ends suppressions: a speaker's later posts are stored as redacted.
import { setTimeout as delay } from 'node:timers/promises'
import { createDeletionRecords } from '@sluice/boot/deletion-records'
import type {
  DeletionRecord,
  EndedSuppression,
  SuppressionList,
  SuppressionsQuery,
} from '@sluice/contract'
import { createGroupCommit } from '@sluice/process'
import { readRedisTime } from '@sluice/process/redis'
import { noteSuppressions, orUnavailable, type QueueKeys } from '@sluice/queue'
import {
  addSuppression,
  listSuppressions,
  readKey,
  removeSuppression,
  type Suppression,
  suppressionIdOf,
} from '@sluice/store/suppressions'
import type { Redis } from 'ioredis'
import type { Db } from 'mongodb'

/**
 * After a change, workers read the whole list. A flood of changes must not keep them from posts.
 */
const NOTE_EVERY_MS = 1_000

/** The tenant has as many suppressions as it may have. */
export class SuppressionsFullError extends Error {
  override name = 'SuppressionsFullError'
}

type Change = Pick<Extract<DeletionRecord, { kind: 'suppression' }>, 'by' | 'opened'>

export type Suppressions = ReturnType<typeof createSuppressions>

/**
 * Makes the functions for the suppressions of a tenant. A change counts for all posts that are
 * accepted after it.
 */
export function createSuppressions(redis: Redis, keys: QueueKeys, db: Db) {
  let notedAt = Number.NEGATIVE_INFINITY
  const note = createGroupCommit(async (changes: true[]) => {
    await delay(Math.max(notedAt + NOTE_EVERY_MS - performance.now(), 0))
    await orUnavailable(noteSuppressions(redis, keys))
    notedAt = performance.now()
    return changes
  })
  const records = createDeletionRecords(redis, keys, db)
  /** Records a change, because a backup of MongoDB may lack it. */
  async function record(tenant: string, name: string, what: Change): Promise<void> {
    const stamp = Math.floor((await orUnavailable(readRedisTime(redis))) * 1_000)
    const id = `${tenant}/${name}`
    await records.write([{ kind: 'suppression', id, stamp, tenant, name, ...what }])
  }
  return {
    /** @throws {SuppressionsFullError | QueueUnavailableError | CommandFailedError} */
    async open(tenant: string, added: Suppression): Promise<void> {
      if (!(await addSuppression(db, tenant, added))) throw new SuppressionsFullError()
      const { by, at: _, ...one } = added
      const opened = { ...one, key: await readKey(db) }
      await record(tenant, suppressionIdOf(added), { by, opened })
      await note(true)
    },
    /** @throws {QueueUnavailableError | CommandFailedError} */
    async end(tenant: string, id: string): Promise<EndedSuppression> {
      const isEnded = await removeSuppression(db, tenant, id)
      if (isEnded) await record(tenant, id, {})
      // Workers also hear of an absent one: this request may repeat one that failed here.
      await note(true)
      return { id, outcome: isEnded ? 'ended' : 'absent' }
    },
    /** @throws {CommandFailedError} */
    async list(tenant: string, query: SuppressionsQuery): Promise<SuppressionList> {
      const { limit = 100, after = '' } = query
      const found = await listSuppressions(db, tenant, after, limit + 1)
      const suppressions = found
        .slice(0, limit)
        .map(({ at, ...one }) => ({ ...one, createdAt: at.toISOString() }))
      const last = suppressions.at(-1)
      return { suppressions, ...(found.length > limit && last && { next: last.id }) }
    },
  }
}
