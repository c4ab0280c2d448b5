// Carries out operations on failed jobs in the background, step by step and at a bounded rate, in
// the process that has the lease.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { OperationKind } from '@sluice/contract'
import type { FailedJobs } from './failed-jobs.ts'
import type { OpenOperation, Operations, StepDone } from './operations.ts'

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
/** This number of threads that an erasure reads counts as one job. */
const THREADS_PER_JOB = 10

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
    const step = await (kind === 'retry' || kind === 'discard'
      ? takeStep(failedJobs, kind, open, limit)
      : takeThreadStep(open))
    if (!(await operations.record(token, open, step))) return LOOK_MS
    onStep(open, step)
    const counted = kind === 'erase' ? step.examined / THREADS_PER_JOB : step.done
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
  const { jobs, next } = await failedJobs.scan({ filter, limit, ...(after && { after }) })
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
