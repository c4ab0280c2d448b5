// Opens, lists and ends suppressions: a speaker's later posts are stored as redacted.
import type { EndedSuppression, SuppressionList, SuppressionsQuery } from '@sluice/contract'
import { noteSuppressions, orUnavailable, type QueueKeys } from '@sluice/queue'
import {
  addSuppression,
  listSuppressions,
  removeSuppression,
  type Suppression,
} from '@sluice/store/suppressions'
import type { Redis } from 'ioredis'
import type { Db } from 'mongodb'

/** The tenant has as many suppressions as it may have. */
export class SuppressionsFullError extends Error {
  override name = 'SuppressionsFullError'
}

export type Suppressions = ReturnType<typeof createSuppressions>

/** Makes the functions for the suppressions of a tenant. A change counts for all posts that are accepted after it. */
export function createSuppressions(redis: Redis, keys: QueueKeys, db: Db) {
  const note = () => orUnavailable(noteSuppressions(redis, keys))
  return {
    /** @throws {SuppressionsFullError | QueueUnavailableError | CommandFailedError} */
    async open(tenant: string, added: Suppression): Promise<void> {
      if (!(await addSuppression(db, tenant, added))) throw new SuppressionsFullError()
      await note()
    },
    /** @throws {QueueUnavailableError | CommandFailedError} */
    async end(tenant: string, id: string): Promise<EndedSuppression> {
      const isEnded = await removeSuppression(db, tenant, id)
      // Also if it is absent: the request may repeat one that failed here.
      await note()
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
