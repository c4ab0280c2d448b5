// Erases the quotes of a speaker in the threads of a tenant, as an operation (`../failed`). No
// index finds a speaker's quotes, because posts would pay for it: the operation reads all quotes of
// the tenant, a few threads in each step.
import type { Erasure, ErasureRequest, FailedJobPlace, Operation } from '@sluice/contract'
import {
  type Deletion,
  type IngestJob,
  isJobId,
  newJobId,
  orUnavailable,
  type QueueKeys,
} from '@sluice/queue'
import { chunksOf } from '@sluice/store/read'
import { hashSpeaker, readKey } from '@sluice/store/suppressions'
import type { Redis } from 'ioredis'
import type { Db } from 'mongodb'
import type { FailedJobs } from '../failed/failed-jobs.ts'
import type { OpenOperation, Operations } from '../failed/operations.ts'
import { pauseStep, type StepDeps, type Steps, sendDeletions } from '../threads/steps.ts'
import { createFindErased } from './find-erased.ts'
import type { Suppressions } from './suppressions.ts'

const FAILED_AT_ONCE = 5
const JOBS_AT_ONCE = 500
/** The most by which the clocks of Redis and this process may differ. */
const CLOCKS_MS = 60_000

function erasureOf({ filter, erases, why, ...operation }: Operation): Erasure | undefined {
  if (filter?.tenant === undefined || erases === undefined) return undefined
  const { tenant, service } = filter
  const { id, by, state, createdAt, changedAt, examined, done, failed = 0 } = operation
  return {
    ...{ id, tenant, ...(service !== undefined && { service }), ...erases },
    ...(why !== undefined && { reason: why }),
    ...{ by, state, createdAt, changedAt, threads: examined, quotes: done, failed },
  }
}

export type Erasures = ReturnType<typeof createErasures>

/** Makes the functions that open and show the erasures of a tenant. */
export function createErasures(
  db: Db,
  operations: Pick<Operations, 'open' | 'find' | 'list'>,
  suppressions: Pick<Suppressions, 'open'>,
) {
  return {
    /**
     * @throws {OperationsFullError | SuppressionsFullError | QueueUnavailableError |
     * CommandFailedError}
     */
    async open(tenant: string, by: string, asked: ErasureRequest): Promise<Erasure> {
      const { service, mode = 'redact', dryRun = false, suppress = false, reason } = asked
      const speaker = hashSpeaker(await readKey(db), tenant, asked.speaker)
      const filter = { tenant, ...(service !== undefined && { service }) }
      const erases = { speaker, mode, dryRun }
      const why = reason === undefined ? {} : { why: reason }
      const id = newJobId()
      // First, so that the operation finds what is accepted before.
      if (suppress && !dryRun)
        await suppressions.open(tenant, {
          ...{ speaker, by, at: new Date(), erasure: id },
          ...(service !== undefined && { service }),
        })
      const request = { filter, erases, ...why }
      const opened = erasureOf(await operations.open('erase', request, 0, by, undefined, id))
      if (opened === undefined) throw new Error('an erasure without a tenant')
      return opened
    },
    /** Returns undefined if the tenant has no erasure with this id. */
    async find(tenant: string, id: string): Promise<Erasure | undefined> {
      const operation = isJobId(id) ? await orUnavailable(operations.find(id)) : undefined
      const erasure = operation && erasureOf(operation)
      return erasure?.tenant === tenant ? erasure : undefined
    },
    /** Lists the erasures, newest first. */
    async list(tenant: string): Promise<Erasure[]> {
      const found = (await orUnavailable(operations.list())).flatMap((one) => erasureOf(one) ?? [])
      return found.filter((one) => one.tenant === tenant)
    },
  }
}

interface EraseDeps extends StepDeps {
  redis: Redis
  keys: QueueKeys
  db: Db
  failedJobs: Pick<FailedJobs, 'scan'>
}

/**
 * Makes the steps of an erasure. After a crash, they begin behind the last thread that is recorded:
 * what is erased already is not found again.
 */
export async function* eraseSpeaker(deps: EraseDeps, open: OpenOperation): Steps {
  const { redis, keys, db, failedJobs } = deps
  const { filter = {}, erases } = open.operation
  const { tenant = '' } = filter
  if (erases === undefined) throw new Error('an erasure that erases nothing')
  const { dryRun } = erases
  const find = createFindErased({ tenant, ...filter, ...erases, key: await readKey(db) })
  const { id: after } = open.after ?? {}
  const since = (Date.parse(open.operation.createdAt) - CLOCKS_MS) * 1_000

  if (!after) yield* eraseAccepted()
  for await (const { deletions, counts } of find.inStore(db, { after, since })) {
    if (!dryRun) yield* send(deletions)
    if (counts === undefined) yield {}
    else
      yield {
        ...{ examined: counts.threads, after: { id: counts.last } },
        ...(dryRun && { done: counts.quotes }),
      }
  }

  function send(deletions: Deletion[]) {
    return sendDeletions(deps, open, tenant, deletions)
  }

  /**
   * Waits until all that was accepted before this moment is stored, or has failed and is erased.
   * The failed jobs come first and last, because an operator may retry some meanwhile.
   */
  async function* eraseAccepted(): Steps {
    yield* eraseFailed()
    const ids: string[] = []
    for await (const found of redis.hscanStream(`${keys.base}load:jobs`, { count: JOBS_AT_ONCE }))
      for (const [id, packed] of chunksOf<string>(found, 2))
        if (id !== undefined && packed?.includes(tenant)) ids.push(id)
    do {
      while (await areQueued(ids)) yield* pauseStep()
      yield* eraseFailed()
    } while (await areQueued(ids))
  }

  async function areQueued(ids: readonly string[]): Promise<boolean> {
    for (const some of chunksOf(ids, JOBS_AT_ONCE)) {
      const found = await redis.hmget(`${keys.base}load:jobs`, ...some)
      if (found.some((packed) => packed !== null)) return true
    }
    return false
  }

  /**
   * Erases what failed jobs have of the speaker, also in their payloads: it stays gone after a
   * retry.
   */
  async function* eraseFailed(): Steps {
    let place: FailedJobPlace | undefined
    for (let isLast = dryRun; !isLast; isLast = place === undefined) {
      const query = { filter, limit: FAILED_AT_ONCE, ...(place && { after: place }) }
      const { jobs, next } = await failedJobs.scan(query)
      const lanes = Object.values(keys.jobs)
      const texts = await Promise.all(
        jobs.flatMap(({ id }) => lanes.map((lane) => redis.hget(lane + id, 'data'))),
      )
      const payloads = texts.flatMap((text): IngestJob[] => (text ? [JSON.parse(text)] : []))
      const deletions = payloads.flatMap(({ threads }) => threads.flatMap(find.inPost))
      yield* send(deletions)
      yield {}
      place = next
    }
  }
}
