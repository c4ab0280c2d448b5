// Deletes a thread, the threads of a tenant, or those that are due, as operations (`../failed`). The deletions
// are jobs, so what was accepted before them is never seen again (law 6 in docs/glossary.md).
import { setTimeout as delay } from 'node:timers/promises'
import { revokeKeys } from '@sluice/credentials/keys'
import { type Enqueuer, forgetTenant, newJobId, QueueFullError, type Results } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import { chunksOf } from '@sluice/store/read'
import { type AgedThread, findThreads } from '@sluice/store/walk'
import type { FailedJobs } from '../failed/failed-jobs.ts'
import type { OpenOperation, StepDone } from '../failed/operations.ts'
import type { createReadJob } from '../jobs/read-job.ts'
import type { createReadTenant } from '../overview/overview.ts'
import { findDue, type RetentionDeps, readRules } from './retention.ts'

export interface ThreadDeps extends RetentionDeps {
  enqueue: Enqueuer['enqueue']
  findResults: Results['find']
  failedJobs: Pick<FailedJobs, 'scan' | 'move'>
  readJob: ReturnType<typeof createReadJob>['readAny']
  readTenant: ReturnType<typeof createReadTenant>
}

type Thread = Omit<AgedThread, 'service' | 'stamp'> & { service: string; until?: number }
/** The steps of an operation. None takes as long as the lease of operations lasts. */
type Steps<Result = void> = AsyncGenerator<Omit<StepDone, 'isLast'>, Result>

/** APIs that reach MongoDB refuse a revoked key after this time. */
const REVOKED_MS = 5_000
/** The pause between two looks at what must end first. */
const LOOK_MS = 50
/** Few, because the posts of their batch wait for them. */
const THREADS_PER_JOB = 20
/** One walk finds at most this many threads, because they stay in memory. */
const MOST_FOUND = 10_000
const NOTHING = { examined: 0, done: 0 }

/**
 * Makes the function that takes the next step of an operation. After a crash, another process
 * begins with the first step: what is deleted already is not found again.
 */
export function createThreadStep(deps: ThreadDeps): (open: OpenOperation) => Promise<StepDone> {
  const begun = new Map<string, Steps>()
  return async (open) => {
    const { id } = open.operation
    const steps = begun.get(id) ?? stepsOf(deps, open)
    // Steps that throw begin again.
    begun.delete(id)
    const { value, done } = await steps.next()
    if (!done) begun.set(id, steps)
    return { ...(value ?? NOTHING), isLast: done === true }
  }
}

function stepsOf(deps: ThreadDeps, { operation, request }: OpenOperation): Steps {
  const { db, redis, keys, failedJobs } = deps
  const { id: requestId, by, kind, createdAt } = operation
  const begunAt = Date.parse(createdAt)
  /** The ids of threads whose deletion failed. They are not tried again. */
  const failed = new Set<string>()
  const { tenant = '', service, externalId } = 'filter' in request ? request.filter : {}
  if (kind !== 'delete') return deleteDue()
  if (service === undefined || externalId === undefined) return deleteTenant(tenant)
  const name = { service, externalId }
  return deleteAll([{ id: sourceIdOf(tenant, name), tenant, ...name }])

  /**
   * Keys go first, so that nothing more is accepted. Once no job waits or is active, all that was
   * accepted is stored or has failed. A worker that was frozen may still store threads of a failed
   * job, so these are deleted, too, before the job is discarded.
   */
  async function* deleteTenant(tenant: string): Steps {
    for (let found = 1; found > 0; ) {
      await revokeKeys(db, tenant)
      while (Date.now() < begunAt + REVOKED_MS || (await deps.readTenant(tenant)).threads > 0)
        yield* pause()
      const { jobs } = await failedJobs.scan({ filter: { tenant }, limit: THREADS_PER_JOB })
      for (const { id } of jobs) {
        const names = (await deps.readJob(id))?.threads ?? []
        yield* deleteAll(
          names.map(({ service, externalId }) => {
            const name = { service, externalId }
            return { id: sourceIdOf(tenant, name), tenant, ...name }
          }),
        )
        await failedJobs.move('discard', [id], by, requestId)
      }
      await forgetTenant(redis, keys, tenant)
      const oldest = yield* collect(findThreads(db, { tenant, until: Number.MAX_VALUE }))
      yield* deleteAll(oldest)
      found = jobs.length + oldest.length
    }
  }

  async function* deleteDue(): Steps {
    for (let found = 1; found > 0; ) {
      const rules = await readRules(db)
      const oldest = yield* collect(findDue(db, rules, deps.retainDays, begunAt))
      yield* deleteAll(oldest)
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
      yield NOTHING
    }
    yield { ...NOTHING, found: oldest.length }
    return oldest
  }

  /** Deletes threads in their order, by one job at a time. */
  async function* deleteAll(threads: readonly Thread[]): Steps {
    for (const some of chunksOf(threads, THREADS_PER_JOB))
      for (const [tenant, own] of Map.groupBy(some, (thread) => thread.tenant)) {
        const deletions = own.map(({ id: sourceId, service, externalId, until }) => {
          const deletes = { sourceId, ...(until !== undefined && { until }) }
          return { deletes, name: { service, externalId } }
        })
        const job = { tenant, requestId, keyId: by, retained: false, threads: deletions }
        const enqueue = () => deps.enqueue(newJobId(), 'bulk', job).catch(undefinedIfFull)
        let id = await enqueue()
        for (; id === undefined; id = await enqueue()) yield* pause()
        let results = await deps.findResults([id])
        for (; results.has(id) && !results.get(id); results = await deps.findResults([id]))
          yield* pause()
        const { receipts = [] } = results.get(id) ?? {}
        for (const [at, thread] of own.entries()) if (receipts[at] === null) failed.add(thread.id)
        const deleted = receipts.filter((one) => one?.source.outcome === 'deleted')
        yield { examined: own.length, done: deleted.length }
      }
  }
}

async function* pause(): Steps {
  await delay(LOOK_MS)
  yield NOTHING
}

function undefinedIfFull(error: unknown): undefined {
  if (!(error instanceof QueueFullError)) throw error
}
