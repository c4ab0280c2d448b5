// Keeps operations on failed jobs in Redis: each is opened by one process, and carried out by whichever has the lease.
import {
  type FailedJobPlace,
  type Operation,
  type OperationKind,
  type OperationRequest,
  placeText,
} from '@sluice/contract'
import type { Redis } from 'ioredis'
import type { QueueKeys } from './bullmq-layout/names.ts'
import { orUnavailable } from './connections.ts'
import { newJobId } from './enqueue.ts'
import { loadScript } from './script.ts'

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
export interface Operations {
  /**
   * Opens an operation on so many jobs.
   *
   * @throws {OperationsFullError}
   * @throws {QueueUnavailableError}
   */
  open(kind: OperationKind, request: OperationRequest, total: number): Promise<Operation>
  find(id: string): Promise<Operation | undefined>
  /** Returns the oldest open operation if this process gets or has the lease on all of them. */
  claim(token: string): Promise<OpenOperation | undefined>
  /** Records a step and renews the lease. Returns false if another process has the lease: then this one must stop. */
  record(token: string, operation: OpenOperation, step: StepDone): Promise<boolean>
  /** Gives the lease back, so that another process goes on at once. */
  release(token: string): Promise<void>
}

const MOST_OPEN = 100
/** Another process takes over after so long without a step, in ms. It must exceed the time between two steps. */
const LEASE_MS = 5_000
const DAY_MS = 24 * 60 * 60 * 1_000
const UNFINISHED_KEPT_MS = 31 * DAY_MS
const FINISHED_KEPT_MS = 7 * DAY_MS

const openScript = loadScript(new URL('./operations.lua#open', import.meta.url))
const claimScript = loadScript(new URL('./operations.lua#claim', import.meta.url))
const recordScript = loadScript(new URL('./operations.lua#record', import.meta.url))

/** Keeps the operations of a queue in Redis. */
export function createOperations(redis: Redis, { base }: QueueKeys): Operations {
  const openOperation = openScript(redis)
  const claimOldest = claimScript(redis)
  const recordStep = recordScript(redis)
  const lease = `${base}operations-lease`

  async function read(id: string): Promise<OpenOperation | undefined> {
    const fields = await redis.hgetall(`${base}operation:${id}`)
    return fields.kind === undefined ? undefined : readOperation(id, fields)
  }

  return {
    async open(kind, request, total) {
      const id = newJobId()
      const createdAt = new Date().toISOString()
      const operation: Operation = {
        id,
        kind,
        state: 'waiting',
        createdAt,
        changedAt: createdAt,
        total,
        examined: 0,
        done: 0,
      }
      const fields = {
        kind,
        createdAt,
        changedAt: createdAt,
        total,
        examined: 0,
        done: 0,
        request: JSON.stringify(request),
      }
      const values = Object.entries(fields).flat()
      const opened = await orUnavailable(openOperation(base, MOST_OPEN, UNFINISHED_KEPT_MS, id, ...values))
      if (opened === 0) throw new OperationsFullError()
      return operation
    },
    find: async (id) => (await read(id))?.operation,
    async claim(token) {
      const id = String(await claimOldest(base, token, LEASE_MS))
      return id === '' ? undefined : read(id)
    },
    async record(token, { operation }, { examined, done, after }) {
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
    async release(token) {
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
