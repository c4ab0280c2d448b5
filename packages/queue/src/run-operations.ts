// Carries out operations on failed jobs in the background, step by step and at a bounded rate. Any number of processes may run this.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { FailedJobFilter } from '@sluice/contract'
import { asError } from './fail-job.ts'
import type { FailedJobs } from './failed-jobs.ts'
import type { OpenOperation, Operations, StepDone } from './operations.ts'

interface RunOptions {
  failedJobs: FailedJobs
  operations: Operations
  /** The most jobs a second, over all operations and processes: the lease lets one process at a time work. */
  jobsPerSecond: number
  onStep: (operation: OpenOperation, step: StepDone) => void
  onError: (error: Error) => void
}

/** How often each process looks for operations, in ms. */
const LOOK_MS = 1_000
/** The pause between two steps that moved nothing, in ms: Redis must serve others meanwhile. */
const REST_MS = 5
/** One step moves at most so many jobs: it is one script. */
const JOBS_PER_STEP = 100

/**
 * Carries out operations until it is closed. A process that ends in the middle of an operation loses nothing: another one goes on where the last step was
 * recorded. It may repeat that one step, and a job that was moved already stays as it is, but is not counted again.
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
      await runOpen().catch((error) => onError(asError(error)))
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

/** Goes from the newest to the oldest. A job that is retried and fails again does so later than all that are left, so it is not retried twice. */
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
