// Keeps operations in Redis, and carries them out in the background. Any process opens an
// operation. The process that has the lease on all operations carries them out, step by step and at
// a bounded rate.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type FailedJobPlace,
  type LaneOperationKind,
  OPERATIONS_LISTED,
  type Operation,
  type OperationKind,
  type OperationRequest,
  type PauseQuery,
  type Status,
  type ThreadOperationKind,
} from '@sluice/contract'
import { asList, openScript, readRedisTime } from '@sluice/process/redis'
import { type Lane, newJobId, orUnavailable, type QueueKeys } from '@sluice/queue'
import type { Redis } from 'ioredis'
import type { FailedJobs } from './failed-jobs.ts'

/** Too many operations are open. */
export class OperationsFullError extends Error {
  override name = 'OperationsFullError'
}

/**
 * Where an operation goes on: after this failed job or, if it is on threads, after the thread with
 * this `id`. `at` is then a random number, so that no two places are equal.
 */
export interface OperationPlace extends FailedJobPlace {
  /** The job of deletions whose result is not counted yet. */
  job?: string | undefined
}

/** An operation with its request, as Redis keeps it. */
export interface OpenOperation {
  operation: Operation & { kind: OperationKind | ThreadOperationKind }
  request: OperationRequest
  /** What the last step examined. The next step continues after it. */
  after?: OperationPlace | undefined
}

export interface StepDone {
  examined: number
  done: number
  isLast: boolean
  /** Present if this step has found the threads that are still to be examined: their number. */
  found?: number
  /** The last job, or the last thread, that this step examined. */
  after?: OperationPlace | undefined
  /** The jobs of deletions that failed for good. */
  failed?: number
}

export type Operations = ReturnType<typeof createOperations>

/**
 * If no step was recorded for this time, another process continues. The time between two steps must
 * be shorter.
 */
const LEASE_MS = 5_000
const DAY_MS = 24 * 60 * 60 * 1_000
const UNFINISHED_KEPT_MS = 31 * DAY_MS
const FINISHED_KEPT_MS = 7 * DAY_MS

type Pause = NonNullable<Status['paused'][Lane]>

/** Reads the record that Redis has of a lane's pause. */
export function readPause(record: string): Pause {
  const { untilMs, ...pause } = JSON.parse(record)
  return untilMs === undefined ? pause : { ...pause, until: new Date(untilMs).toISOString() }
}

/** Keeps the operations of a queue in Redis. */
export function createOperations(redis: Redis, { base, jobs }: QueueKeys) {
  const openOperation = openScript(redis, new URL('./operations.lua#open', import.meta.url))
  const claimOldest = openScript(redis, new URL('./operations.lua#claim', import.meta.url))
  const renewLease = openScript(redis, new URL('./operations.lua#renew', import.meta.url))
  const recordStep = openScript(redis, new URL('./operations.lua#record', import.meta.url))
  const operateLane = openScript(redis, new URL('./operations.lua#lane', import.meta.url))

  async function read(id: string): Promise<Operation | undefined> {
    const key = `${base}operation:${id}`
    const [text, stored, failedAgain] = await redis.hmget(key, 'operation', 'stored', 'failedAgain')
    if (!text) return undefined
    const outcomes = {
      ...(stored && { stored: Number(stored) }),
      ...(failedAgain && { failedAgain: Number(failedAgain) }),
    }
    return { ...JSON.parse(text), ...outcomes }
  }

  /** Takes its time from Redis, because it is compared with stamps, which are Redis's time. */
  async function newOperation(
    facts: Pick<
      Operation,
      'kind' | 'state' | 'by' | 'filter' | 'erases' | 'reasonGroup' | 'lane' | 'why' | 'total'
    >,
  ): Promise<Operation> {
    const now = new Date(await orUnavailable(readRedisTime(redis))).toISOString()
    return { id: newJobId(), ...facts, createdAt: now, changedAt: now, examined: 0, done: 0 }
  }

  return {
    /**
     * Opens an operation on `total` jobs.
     *
     * @param by names the operator.
     * @param reasonGroup describes the filter's group in words, which are kept when the group has
     * no job any more.
     * @param id of the operation.
     * @throws {OperationsFullError | QueueUnavailableError}
     */
    async open(
      kind: OperationKind | ThreadOperationKind,
      request: OperationRequest,
      total: number,
      by: string,
      reasonGroup?: string,
      id = newJobId(),
    ): Promise<Operation> {
      const filter = 'filter' in request ? request : {}
      const reason = reasonGroup === undefined ? {} : { reasonGroup }
      const facts = { kind, state: 'waiting', by, ...filter, ...reason, total } as const
      const operation = { ...(await newOperation(facts)), id }
      const texts = [operation.id, JSON.stringify(operation), JSON.stringify(request)]
      const opened = await orUnavailable(
        openOperation(base, OPERATIONS_LISTED, UNFINISHED_KEPT_MS, ...texts),
      )
      if (opened === 0) throw new OperationsFullError()
      return operation
    },
    /**
     * Pauses or resumes a lane for all workers. A paused lane still accepts jobs, up to the bounds
     * of the queue.
     *
     * @param query.since when the pause began: by default now, or earlier if a pause that Redis
     * had lost is restored.
     * @throws {QueueUnavailableError}
     */
    async operateLane(
      kind: LaneOperationKind,
      lane: Lane,
      by: string,
      { seconds, since, until, ...reason }: PauseQuery & Partial<Pause> = {},
    ): Promise<Operation> {
      const facts = { kind, state: 'completed', by, lane, total: 0, ...reason } as const
      const operation = await newOperation(facts)
      const end = until === undefined ? { seconds } : { untilMs: Date.parse(until) }
      const pause = { by, since: since ?? operation.createdAt, ...reason, ...end }
      const kept = [FINISHED_KEPT_MS, OPERATIONS_LISTED, operation.id, JSON.stringify(operation)]
      const record = await orUnavailable(operateLane(base, kind, lane, jobs[lane], pause, ...kept))
      return record ? { ...operation, pause: readPause(String(record)) } : operation
    },
    find: read,
    /** Ends an operation that is open only because Redis was restored from a backup. */
    async end(id: string, done: number): Promise<void> {
      const operation = await read(id)
      if (operation === undefined || operation.state === 'completed') return
      const ended = { ...operation, state: 'completed', done }
      await redis.hset(`${base}operation:${id}`, 'operation', JSON.stringify(ended))
      await redis.lrem(`${base}operations`, 0, id)
    },
    /**
     * Returns the newest operations (at most `OPERATIONS_LISTED`) and older ones that are still
     * open, newest first.
     */
    async list(): Promise<Operation[]> {
      const [newest, open] = await Promise.all([
        redis.lrange(`${base}newest-operations`, 0, -1),
        redis.lrange(`${base}operations`, 0, -1),
      ])
      const ids = new Set([...newest, ...open.reverse()])
      const found = await Promise.all(Array.from(ids, read))
      return found.filter((operation) => operation !== undefined)
    },
    /**
     * Gets or renews the lease on all operations. Returns the oldest open operation if this process
     * has the lease.
     */
    async claim(token: string): Promise<OpenOperation | undefined> {
      const [operation, request, after] = asList(await claimOldest(base, token, LEASE_MS))
      if (!operation) return undefined
      const open = {
        operation: JSON.parse(String(operation)),
        request: JSON.parse(String(request)),
      }
      return after ? { ...open, after: JSON.parse(String(after)) } : open
    },
    /** Renews the lease, if this process has it. */
    renew: (token: string): Promise<unknown> => renewLease(base, token, LEASE_MS),
    /**
     * Records a step and renews the lease. Returns false if another process has the lease: then
     * this process must stop.
     */
    async record(token: string, { operation }: OpenOperation, step: StepDone): Promise<boolean> {
      const { id } = operation
      const [examined, done] = [operation.examined + step.examined, operation.done + step.done]
      const state = step.isLast ? 'completed' : 'active'
      const failed = (operation.failed ?? 0) + (step.failed ?? 0)
      const total = step.found === undefined ? operation.total : operation.examined + step.found
      const changed = {
        ...operation,
        state,
        changedAt: new Date().toISOString(),
        total,
        examined,
        done,
        ...(failed > 0 && { failed }),
      }
      const keptMs = step.isLast ? FINISHED_KEPT_MS : UNFINISHED_KEPT_MS
      const after = step.after ? JSON.stringify(step.after) : ''
      return (
        (await recordStep(
          base,
          token,
          LEASE_MS,
          keptMs,
          id,
          state,
          JSON.stringify(changed),
          after,
          Number(operation.kind !== 'retry' && operation.kind !== 'discard'),
        )) === 1
      )
    },
  }
}

export interface RunOptions {
  failedJobs: Pick<FailedJobs, 'scan' | 'move' | 'count'>
  operations: Operations
  /** Takes a step of an operation on threads. */
  takeThreadStep: (open: OpenOperation) => Promise<StepDone>
  /** Opens operations that nobody asks for. Is called while this process has nothing to do. */
  openDue: () => Promise<void>
  /**
   * The most jobs a second, for all operations and processes together, because the lease lets only
   * one process work.
   */
  jobsPerSecond: number
  onStep: (operation: OpenOperation, step: StepDone) => void
  onError: (error: Error) => void
}

/** A process without work looks for operations again after this time. */
const LOOK_MS = 1_000
/** The shortest pause between two steps, so that Redis can serve others in between. */
const REST_MS = 5
/** The most jobs of one step, which is one script. */
const JOBS_PER_STEP = 100
/** Reading this number of threads for an erasure counts as one job against `jobsPerSecond`. */
const READ_PER_JOB = 10

/**
 * Carries out operations until the returned function is called. If the process ends during an
 * operation, another process continues after the last recorded step. It may repeat a step, in which
 * jobs that were already moved stay as they are.
 */
export function runOperations({
  failedJobs,
  operations,
  takeThreadStep,
  openDue,
  jobsPerSecond,
  onStep,
  onError,
}: RunOptions) {
  const token = randomUUID()
  const closing = new AbortController()
  const limit = Math.min(JOBS_PER_STEP, jobsPerSecond)

  /** Takes a step of the oldest open operation. Returns the pause before the next step, in ms. */
  async function runNext(): Promise<number> {
    const open = await operations.claim(token)
    if (open === undefined) {
      await openDue()
      return LOOK_MS
    }
    const { kind } = open.operation
    // A step that reads MongoDB may take longer than the lease.
    const renewing = setInterval(() => operations.renew(token).catch(onError), LEASE_MS / 3)
    const step = await (kind === 'retry' || kind === 'discard'
      ? takeStep(failedJobs, kind, open, limit)
      : takeThreadStep(open)
    ).finally(() => clearInterval(renewing))
    if (!(await operations.record(token, open, step))) return LOOK_MS
    onStep(open, step)
    const counted = kind === 'erase' ? step.examined / READ_PER_JOB : step.done
    return Math.max((counted / jobsPerSecond) * 1_000, REST_MS)
  }

  async function keepRunning(): Promise<void> {
    while (!closing.signal.aborted) {
      const pauseMs = await runNext().catch((error) => {
        onError(error)
        return LOOK_MS
      })
      await delay(pauseMs, undefined, { signal: closing.signal }).catch(() => {})
    }
  }

  const running = keepRunning()
  return (): Promise<void> => {
    closing.abort()
    return running
  }
}

async function takeStep(
  failedJobs: RunOptions['failedJobs'],
  kind: OperationKind,
  { operation, request, after }: OpenOperation,
  limit: number,
): Promise<StepDone> {
  const { total, examined, by } = operation
  if ('ids' in request) {
    const ids = request.ids.slice(examined, examined + limit)
    const done = await failedJobs.move(kind, ids, by, operation.id)
    return { examined: ids.length, done, isLast: examined + ids.length >= request.ids.length }
  }
  const { filter } = request
  // The scan goes from the newest failure to the oldest. So if a retried job fails again, the scan
  // does not meet it again.
  const { jobs, next } = await failedJobs.scan({ filter, limit, after })
  const ids = jobs.map(({ id }) => id)
  const done = await failedJobs.move(kind, ids, by, operation.id)
  const left =
    next === undefined
      ? 0
      : await failedJobs.count({ ...filter, until: new Date(next.at).toISOString() })
  return {
    examined: Math.max(total - left - examined, 0),
    done,
    isLast: next === undefined,
    after: next,
  }
}
