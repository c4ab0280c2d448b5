// Deletes a thread, the threads of a tenant, or those that are due, as operations (`../failed`).
// They begin with the first step after a crash: what is deleted already is not found again.
import { isDeepStrictEqual } from 'node:util'
import { revokeKeys } from '@sluice/credentials/keys'
import { forgetTenant, noteSuppressions } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import { chunksOf } from '@sluice/store/read'
import { removeSuppressions } from '@sluice/store/suppressions'
import { type AgedThread, findThreads } from '@sluice/store/walk'
import type { FailedJobs } from '../failed/failed-jobs.ts'
import type { OpenOperation } from '../failed/operations.ts'
import type { createReadJob } from '../jobs/jobs.ts'
import type { createReadTenant } from '../overview/overview.ts'
import { findDue, type RetentionDeps, readRules } from './retention.ts'
import { pauseStep, type StepDeps, type Steps, sendDeletions, THREADS_PER_JOB } from './steps.ts'

interface ThreadDeps extends RetentionDeps, StepDeps {
  failedJobs: Pick<FailedJobs, 'scan' | 'move'>
  readJob: ReturnType<typeof createReadJob>['readAny']
  readTenant: ReturnType<typeof createReadTenant>
}

type Thread = Omit<AgedThread, 'stamp'> & { until?: number }

/** APIs that reach MongoDB refuse a revoked key after this time. */
const REVOKED_MS = 5_000
/** One walk finds at most this many threads, because they stay in memory. */
const MOST_FOUND = 10_000

/**
 * After each job, retention rests this many times as long as the job took. So the p99 of posts
 * beside it stays within 1.1 times (without rests, it was 1.3 to 2.3 times on the emulator).
 */
const RESTS = 4

/** Makes the steps of an operation that deletes threads. */
export function deleteThreads(deps: ThreadDeps, open: OpenOperation): Steps {
  const { db, redis, keys, failedJobs } = deps
  const { id: requestId, by, kind, createdAt } = open.operation
  const begunAt = Date.parse(createdAt)
  /** The ids of threads whose deletion failed. They are not tried again. */
  const failed = new Set<string>()
  const { tenant = '', service, externalId } = open.operation.filter ?? {}
  if (kind !== 'delete') return deleteDue()
  if (service === undefined || externalId === undefined) return deleteTenant()
  return deleteAll([named({ service, externalId })])

  function named({ service, externalId }: Thread['name']): Thread {
    const name = { service, externalId }
    return { id: sourceIdOf(tenant, name), tenant, name }
  }

  /**
   * Keys go first, so that nothing more is accepted. Once no job waits or is active, all that was
   * accepted is stored or has failed. A worker that was frozen may still store threads of a failed
   * job, so these are deleted, too, before the job is discarded.
   */
  async function* deleteTenant(): Steps {
    for (let found = 1; found > 0; ) {
      await revokeKeys(db, tenant)
      while (Date.now() < begunAt + REVOKED_MS || (await deps.readTenant(tenant)).threads > 0)
        yield* pauseStep()
      const { jobs } = await failedJobs.scan({ filter: { tenant }, limit: THREADS_PER_JOB })
      for (const { id } of jobs) {
        yield* deleteAll((await deps.readJob(id))?.threads?.map(named) ?? [])
        await failedJobs.move('discard', [id], by, requestId)
      }
      await forgetTenant(redis, keys, tenant)
      await removeSuppressions(db, tenant)
      await noteSuppressions(redis, keys)
      const oldest = yield* collect(findThreads(db, { tenant }))
      yield* deleteAll(oldest)
      found = jobs.length + oldest.length
    }
  }

  async function* deleteDue(): Steps {
    for (let found = 1; found > 0; ) {
      const rules = await readRules(db)
      const oldest = yield* collect(findDue(db, rules, deps.retainDays, begunAt))
      for (const some of chunksOf(oldest, THREADS_PER_JOB)) {
        // A rule that somebody ends must delete no more threads.
        if (!isDeepStrictEqual(await readRules(db), rules)) break
        const began = performance.now()
        yield* deleteAll(some)
        const restMs = (performance.now() - began) * RESTS
        for (const end = performance.now() + restMs; performance.now() < end; ) yield* pauseStep()
      }
      found = oldest.length
    }
  }

  /** Collects the oldest threads that were found, in the order of their age. */
  async function* collect<Found extends AgedThread>(parts: AsyncIterable<Found[]>): Steps<Found[]> {
    let oldest: Found[] = []
    for await (const part of parts) {
      oldest = [...oldest, ...part.filter(({ id }) => !failed.has(id))]
        .sort((one, other) => one.stamp - other.stamp)
        .slice(0, MOST_FOUND)
      yield {}
    }
    yield { found: oldest.length }
    return oldest
  }

  /** Deletes threads in their order, by one job at a time. */
  async function* deleteAll(threads: readonly Thread[]): Steps {
    for (const some of chunksOf(threads, THREADS_PER_JOB))
      for (const [tenant, own] of Map.groupBy(some, (thread) => thread.tenant)) {
        const deletions = own.map(({ id: sourceId, name, until }) => {
          return { deletes: { sourceId, ...(until !== undefined && { until }) }, name }
        })
        const receipts = yield* sendDeletions(deps, open, tenant, deletions)
        for (const [at, { id }] of own.entries()) if (receipts[at] === null) failed.add(id)
      }
  }
}
