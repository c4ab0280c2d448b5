// Operations on failed jobs: each is opened by one process, kept in Redis, and carried out in the background, step by
// step and at a bounded rate, by the process that has the lease.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type FailedJobFilter,
  type FailedJobPlace,
  type Operation,
  type OperationKind,
  type OperationRequest,
  placeText,
} from '@sluice/contract'
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'
import { newJobId } from '../job/job.ts'
import { orUnavailable } from '../load/refusals.ts'
import { loadScript } from '../redis/script.ts'
import type { FailedJobs } from './failed-set.ts'

/** Too many operations are open. */
export class OperationsFullError extends Error {
  constructor() {
    super(`${MOST_OPEN} operations are open`)
    this.name = 'OperationsFullError'
  }
}

/** An operation that is not finished, with what is needed to go on with it. */
export interface OpenOperation {
  operation: Operation
  request: OperationRequest
  /** Where a filter's scan goes on. */
  after?: FailedJobPlace
}

/** The result of one step of an operation. */
export interface StepDone {
  examined: number
  done: number
  /** Where the next step goes on. Undefined if this was the last step. */
  after?: FailedJobPlace
}

/** The operations of a queue. */
export type Operations = ReturnType<typeof createOperations>

const MOST_OPEN = 100
/** Another process goes on after this time without a step. It must exceed the time between two steps. */
const LEASE_MS = 5_000
const DAY_MS = 24 * 60 * 60 * 1_000
const UNFINISHED_KEPT_MS = 31 * DAY_MS
const FINISHED_KEPT_MS = 7 * DAY_MS

const openScript = loadScript(new URL('./operations.lua#open', import.meta.url))
const claimScript = loadScript(new URL('./operations.lua#claim', import.meta.url))
const recordScript = loadScript(new URL('./operations.lua#record', import.meta.url))

/** Keeps the operations of a queue in Redis. */
export function createOperations(redis: Redis, { base }: QueueKeys) {
  const openOperation = openScript(redis)
  const claimOldest = claimScript(redis)
  const recordStep = recordScript(redis)
  const lease = `${base}operations-lease`

  async function read(id: string): Promise<OpenOperation | undefined> {
    const fields = await redis.hgetall(`${base}operation:${id}`)
    return fields.kind === undefined ? undefined : readOperation(id, fields)
  }

  return {
    /** Opens an operation on `total` jobs. @throws {OperationsFullError | QueueUnavailableError} */
    async open(kind: OperationKind, request: OperationRequest, total: number): Promise<Operation> {
      const id = newJobId()
      const createdAt = new Date().toISOString()
      const progress = { createdAt, changedAt: createdAt, total, examined: 0, done: 0 }
      const values = Object.entries({ kind, ...progress, request: JSON.stringify(request) }).flat()
      const opened = await orUnavailable(openOperation(base, MOST_OPEN, UNFINISHED_KEPT_MS, id, ...values))
      if (opened === 0) throw new OperationsFullError()
      return { id, kind, state: 'waiting', ...progress }
    },
    find: async (id: string): Promise<Operation | undefined> => (await read(id))?.operation,
    /** Returns the oldest open operation if this process gets or has the lease on all of them. */
    async claim(token: string): Promise<OpenOperation | undefined> {
      const id = String(await claimOldest(base, token, LEASE_MS))
      return id === '' ? undefined : read(id)
    },
    /** Records a step and renews the lease. Returns false if another process has the lease: then this one must stop. */
    async record(token: string, { operation }: OpenOperation, { examined, done, after }: StepDone): Promise<boolean> {
      const finished = after === undefined
      const fields = {
        changedAt: new Date().toISOString(),
        examined: operation.examined + examined,
        done: operation.done + done,
        ...(finished ? { finished: 1 } : { after: placeText(after) }),
      }
      const about = [LEASE_MS, FINISHED_KEPT_MS, operation.id, finished ? 1 : 0]
      return (await recordStep(base, token, ...about, ...Object.entries(fields).flat())) === 1
    },
    /** Returns the lease, so that another process goes on at once. */
    async release(token: string): Promise<void> {
      if ((await redis.get(lease)) === token) await redis.del(lease)
    },
  }
}

function readOperation(id: string, fields: Record<string, string>): OpenOperation {
  const { kind, createdAt = '', changedAt = '', request = '{}', after, finished } = fields
  const [total, examined, done] = [fields.total, fields.examined, fields.done].map(Number)
  const operation: Operation = {
    id,
    kind: kind === 'retry' ? 'retry' : 'discard',
    state: finished !== undefined ? 'completed' : after === undefined ? 'waiting' : 'active',
    createdAt,
    changedAt,
    total: total ?? 0,
    examined: examined ?? 0,
    done: done ?? 0,
  }
  const [at, placeId = ''] = after?.split('.') ?? []
  return {
    operation,
    request: JSON.parse(request),
    ...(at !== undefined && { after: { at: Number(at), id: placeId } }),
  }
}

interface RunOptions {
  failedJobs: FailedJobs
  operations: Operations
  /** The most jobs a second, over all operations and processes: the lease lets one process at a time work. */
  jobsPerSecond: number
  onStep: (operation: OpenOperation, step: StepDone) => void
  onError: (error: Error) => void
}

/** The pause after which a process looks for operations again. */
const LOOK_MS = 1_000
/** The pause between two steps that moved nothing: Redis must serve others meanwhile. */
const REST_MS = 5
/** The most jobs of one step, which is one script. */
const JOBS_PER_STEP = 100

/**
 * Carries out operations until it is closed. A process that ends in the middle of an operation loses nothing: another
 * one goes on where the last step was recorded. It may repeat that one step, and a job that was moved already stays as
 * it is, but is not counted again.
 */
export function runOperations({ failedJobs, operations, jobsPerSecond, onStep, onError }: RunOptions) {
  const token = randomUUID()
  const closing = new AbortController()
  const limit = Math.min(JOBS_PER_STEP, jobsPerSecond)
  let wake = Promise.withResolvers<void>()

  async function runOpen(): Promise<void> {
    for (;;) {
      const open = closing.signal.aborted ? undefined : await operations.claim(token)
      if (open === undefined) return
      const step = await takeStep(failedJobs, open, limit)
      if (!(await operations.record(token, open, step))) return
      onStep(open, step)
      await pause(Math.max((step.done / jobsPerSecond) * 1_000, REST_MS))
    }
  }

  const pause = (ms: number) => delay(ms, undefined, { signal: closing.signal }).catch(() => {})

  async function keepRunning(): Promise<void> {
    while (!closing.signal.aborted) {
      await runOpen().catch(onError)
      await Promise.race([pause(LOOK_MS), wake.promise])
      wake = Promise.withResolvers()
    }
    await operations.release(token).catch(() => {})
  }

  const running = keepRunning()
  return {
    /** Looks for operations at once. */
    wake: () => wake.resolve(),
    async close(): Promise<void> {
      closing.abort()
      await running
    },
  }
}

function takeStep(failedJobs: FailedJobs, open: OpenOperation, limit: number): Promise<StepDone> {
  const { request } = open
  if ('ids' in request) return takeIds(failedJobs, open, request.ids, limit)
  return takeMatches(failedJobs, { ...open, filter: request.filter }, limit)
}

async function takeIds(
  failedJobs: FailedJobs,
  { operation }: OpenOperation,
  ids: readonly string[],
  limit: number,
): Promise<StepDone> {
  const part = ids.slice(operation.examined, operation.examined + limit)
  const done = await failedJobs.move(operation.kind, part)
  const isLast = operation.examined + part.length >= ids.length
  return { examined: part.length, done, ...(!isLast && { after: { at: 0, id: part.at(-1) ?? '' } }) }
}

/** Goes from the newest to the oldest, so a job that fails again meanwhile is not retried twice. */
async function takeMatches(
  failedJobs: FailedJobs,
  { operation, filter, after }: OpenOperation & { filter: FailedJobFilter },
  limit: number,
): Promise<StepDone> {
  const { jobs, next } = await failedJobs.scan({ filter, limit, ...(after && { after }) })
  const ids = jobs.map(({ id }) => id)
  const done = await failedJobs.move(operation.kind, ids)
  const left = next === undefined ? 0 : await failedJobs.count({ ...filter, until: new Date(next.at).toISOString() })
  const examined = Math.max(operation.total - left - operation.examined, 0)
  return { examined, done, ...(next && { after: next }) }
}
