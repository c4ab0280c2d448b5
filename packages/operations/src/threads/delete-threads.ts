// Deletes a thread, the threads of a tenant, or the threads that a rule of retention makes due, as
// operations (`../failed`), and writes the records of operations. After a crash, an operation starts
// over with its first step: what is deleted already is not found again.
import { isDeepStrictEqual } from 'node:util'
import type { DeletionRecords } from '@sluice/boot/deletion-records'
import type { DeletionRecord } from '@sluice/contract'
import { revokeKeys } from '@sluice/credentials/keys'
import { readRedisTime } from '@sluice/process/redis'
import { forgetTenant, noteSuppressions, type QueueKeys } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import { chunksOf } from '@sluice/store/read'
import { readKey, removeSuppressions } from '@sluice/store/suppressions'
import { type AgedThread, findThreads } from '@sluice/store/walk'
import type { Redis } from 'ioredis'
import type { Db } from 'mongodb'
import type { FailedJobs } from '../failed/failed-jobs.ts'
import type { OpenOperation, Operations, StepDone } from '../failed/operations.ts'
import type { createReadJob } from '../jobs/jobs.ts'
import type { createReadTenant } from '../overview/overview.ts'
import {
  APART_MS,
  pauseStep,
  type StepDeps,
  type Steps,
  sendDeletions,
  THREADS_PER_JOB,
} from './steps.ts'

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
 * A job of retention deletes this many threads, and then rests this many times as long as it took.
 * On the emulator, with threads of 20 quotes, the p99 of posts beside it was 1.02 times as long as
 * without it. With nine rests it was 1.14 times, with four 1.3 times.
 */
const DUE_AT_ONCE = 5
const RESTS = 19
/** Bounds the rest after a job that waited for MongoDB or Redis to come back. */
const LONGEST_REST_MS = 20_000
/** The length of a step of a rest. A process that ends waits for its step. */
const REST_STEP_MS = 500

/** Makes the steps of an operation that deletes threads. */
export function deleteThreads(deps: ThreadDeps, open: OpenOperation): Steps {
  const { db, redis, keys, failedJobs } = deps
  const { id: requestId, by, kind } = open.operation
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
    let revokedAt: number | undefined
    for (let found = 1; found > 0; ) {
      await revokeKeys(db, tenant)
      // Measured from here: the operation may have been opened long ago, and have waited for
      // others.
      revokedAt ??= performance.now()
      while (
        performance.now() - revokedAt < REVOKED_MS ||
        (await deps.readTenant(tenant)).threads > 0
      )
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
      const oldest = yield* collect(findDue(db, rules, deps.retainDays, dueAt(open)))
      for (const some of chunksOf(oldest, DUE_AT_ONCE)) {
        // A rule that somebody ends must delete no more threads.
        if (!isDeepStrictEqual(await readRules(db), rules)) break
        const began = performance.now()
        yield* deleteAll(some)
        const restMs = Math.min((performance.now() - began) * RESTS, LONGEST_REST_MS)
        for (const end = performance.now() + restMs; performance.now() < end; )
          yield* pauseStep(REST_STEP_MS)
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

/**
 * How long threads of a tenant, of all services or of one, are kept after their last post.
 */
export type RetentionRule = Extract<DeletionRecord, { kind: 'retention' }>['rules'][number]

/** The rules are in the collection `layout`, which has what concerns the whole store. */
const rulesIn = (db: Db) => db.collection<RetentionRule & { _id: string; at?: Date }>('layout')
const nameOf = (tenant: string, service?: string) => `retain:${JSON.stringify([tenant, service])}`

/** Adds a rule, or replaces the rule for the same threads. */
export async function writeRule(db: Db, rule: RetentionRule): Promise<void> {
  const _id = nameOf(rule.tenant, rule.service)
  await rulesIn(db).replaceOne({ _id }, { ...rule, at: new Date() }, { upsert: true })
}

/** Removes the rules that a tenant got up to a moment: another one may have its name later. */
export async function removeRules(db: Db, tenant: string, until = new Date()): Promise<void> {
  await rulesIn(db).deleteMany({ tenant, seconds: { $exists: true }, at: { $not: { $gt: until } } })
}

export async function readRules(db: Db): Promise<RetentionRule[]> {
  const rules = rulesIn(db).find({ seconds: { $exists: true } }, { readPreference: 'primary' })
  return (await rules.toArray()).map(({ _id, at: _, ...rule }) => rule)
}

/**
 * Returns the moment at which a thread must be due, in ms since 1970: the earlier one of Redis's clock
 * and ours. A clock that is a year ahead must not delete what is to be kept for a year.
 */
const dueAt = ({ operation: { createdAt } }: OpenOperation) =>
  Math.min(Date.parse(createdAt), Date.now())

/** A thread to delete. `until`: the stamp up to which its posts are deleted. */
interface DueThread extends AgedThread {
  until: number
}

/**
 * Finds the threads that are due at a moment (ms since 1970), part by part. The rule of a service
 * goes before the rule of its tenant, and this one before the default (in days; 0 for none).
 * @throws {CommandFailedError}
 */
export async function* findDue(
  db: Db,
  rules: readonly RetentionRule[],
  defaultDays: number,
  at: number,
): AsyncGenerator<DueThread[]> {
  const untilOf = (seconds: number | null) =>
    seconds === null ? Number.NEGATIVE_INFINITY : (at - seconds * 1_000) * 1_000
  const byDefault = untilOf(defaultDays > 0 ? defaultDays * 86_400 : null)
  const byName = new Map(
    rules.map(({ tenant, service, seconds }) => [nameOf(tenant, service), untilOf(seconds)]),
  )
  const until = Math.max(byDefault, ...byName.values())
  if (until === Number.NEGATIVE_INFINITY) return
  for await (const found of findThreads(db, {}, { until }))
    yield found.flatMap((thread) => {
      const ofTenant = byName.get(nameOf(thread.tenant)) ?? byDefault
      const until = byName.get(nameOf(thread.tenant, thread.name.service)) ?? ofTenant
      return thread.stamp <= until ? [{ ...thread, until }] : []
    })
}

export interface RetentionDeps {
  redis: Redis
  keys: QueueKeys
  db: Db
  /** The default of `findDue`. */
  retainDays: number
}

/** Due threads are looked for once in this time, or in `ASK_MS` while there is no rule. */
const EVERY_MS = 24 * 60 * 60 * 1_000
const ASK_MS = 60_000

/**
 * Makes the function that opens the operation on due threads, in one process once in `EVERY_MS`.
 */
export function createOpenDue(
  { redis, keys, db, retainDays }: RetentionDeps,
  operations: Pick<Operations, 'open'>,
) {
  const key = `${keys.base}retention`
  return async (): Promise<void> => {
    if ((await redis.set(key, '', 'PX', ASK_MS, 'NX')) === null) return
    if (retainDays === 0 && (await readRules(db)).length === 0) return
    const { id } = await operations.open('retain', { filter: {} }, 0, 'retention')
    await redis.set(key, id, 'PX', EVERY_MS)
  }
}

type TakeStep = (open: OpenOperation) => Promise<StepDone>
type RecordDeps = Pick<RetentionDeps, 'redis' | 'db' | 'retainDays'> & {
  records: Pick<DeletionRecords, 'write'>
}

/**
 * Makes steps that write the record of an operation that deletes or erases, because its jobs write
 * none: at the beginning, before anything is removed, and at the end with the count. A record names
 * what is asked for, not what is found, so it stays small. Retention, which finds nothing on most
 * days, is recorded when it has found something.
 */
export function createRecordedStep(deps: RecordDeps, takeStep: TakeStep): TakeStep {
  return async (open) => {
    const { kind, state, done } = open.operation
    if (state === 'waiting' && kind !== 'retain') await record(deps, open)
    const step = await takeStep(open)
    if (kind === 'retain' && step.found) await record(deps, open)
    if (kind !== 'retain' && step.isLast) await record(deps, open, done + step.done)
    return step
  }
}

async function record(deps: RecordDeps, open: OpenOperation, done?: number): Promise<void> {
  const { records, redis } = deps
  const what = await describe(deps, open)
  if (what === undefined) return
  const { id, by, createdAt } = open.operation
  // An erasure keeps what is posted after its request. A deleted tenant has no later posts until
  // the operation has ended.
  const until =
    what.kind === 'erasure' ? Date.parse(createdAt) + APART_MS : await readRedisTime(redis)
  const stamp = Math.floor(until * 1_000)
  await records.write([{ ...what, id, stamp, by, ...(done !== undefined && { done }) }])
}

type What<Of = DeletionRecord> = Of extends unknown
  ? Omit<Of, 'id' | 'stamp' | 'by' | 'done'>
  : never

/** Returns undefined for an operation that only counts. */
async function describe(
  { db, retainDays }: RecordDeps,
  open: OpenOperation,
): Promise<What | undefined> {
  const { kind, filter = {}, erases } = open.operation
  const { tenant = '', service, externalId } = filter
  if (kind === 'retain') {
    const [rules, at] = [await readRules(db), dueAt(open)]
    return { kind: 'retention', rules, days: retainDays, at }
  }
  if (erases === undefined && service !== undefined && externalId !== undefined) {
    const sourceId = sourceIdOf(tenant, { service, externalId })
    return { kind: 'deletion', tenant, deletes: [{ sourceId }] }
  }
  if (erases === undefined) return { kind: 'tenant', tenant }
  const { speaker, mode, dryRun } = erases
  if (dryRun) return undefined
  const of = { tenant, ...(service !== undefined && { service }) }
  return { kind: 'erasure', ...of, speaker, mode, key: await readKey(db) }
}
