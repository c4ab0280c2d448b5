// Takes the steps of operations on threads. The deletions of a step are a job, so what was accepted
// before them is never seen again (law 6 in docs/glossary.md).
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Deletion,
  type Enqueuer,
  type JobResult,
  newJobId,
  QueueFullError,
  type Results,
} from '@sluice/queue'
import type { OpenOperation, OperationPlace, StepDone } from '../failed/operations.ts'

/** The steps of an operation. A step without `after` leaves the recorded place as it is. */
export type Steps<Result = void> = AsyncGenerator<
  Partial<Omit<StepDone, 'isLast' | 'after'>> & { after?: Partial<OperationPlace> },
  Result
>

export interface StepDeps {
  enqueue: Enqueuer['enqueue']
  findResults: Results['find']
}

/**
 * A job that deletes quotes has at most this number of threads, because other deletions wait for
 * it.
 */
export const THREADS_PER_JOB = 20
/** After a failover, Redis's clock may be behind by this time. `sluice doctor` reports more. */
export const APART_MS = 1_000
/** While a step waits for a job, it looks this often whether the job has ended. */
const LOOK_MS = 50

/**
 * Makes the function that takes the next step of an operation. The steps begin again, at the
 * recorded place, after a crash or an error, or if another process has taken some meanwhile.
 */
export function createTakeStep(deps: StepDeps, stepsOf: (open: OpenOperation) => Steps) {
  const begun = new Map<string, { steps: Steps; at: number | undefined }>()
  async function* begin(open: OpenOperation): Steps {
    if (open.after?.job !== undefined) yield* countResult(deps, open, open.after.job)
    yield* stepsOf(open)
  }
  return async (open: OpenOperation): Promise<StepDone> => {
    const { id } = open.operation
    const known = begun.get(id)
    const steps = known && known.at === open.after?.at ? known.steps : begin(open)
    begun.delete(id)
    const { value, done: isLast = false } = await steps.next()
    const after = { id: '', ...open.after, ...value?.after, at: Math.random() }
    if (!isLast) begun.set(id, { steps, at: after.at })
    return { examined: 0, done: 0, ...value, isLast, after }
  }
}

/**
 * Sends deletions as a job, if there are any, and waits for its result. The job's id is recorded
 * before, so that the result is counted if this process ends.
 */
export async function* sendDeletions(
  deps: StepDeps,
  open: OpenOperation,
  tenant: string,
  threads: Deletion[],
): Steps<JobResult['receipts']> {
  if (threads.length === 0) return []
  const { id: requestId, by: keyId } = open.operation
  const id = newJobId()
  yield { after: { job: id } }
  const job = { tenant, requestId, keyId, retained: false, recorded: true, threads } as const
  while (!(await deps.enqueue(id, 'bulk', job).catch(undefinedIfFull))) yield* pauseStep()
  return yield* countResult(deps, open, id)
}

/** Waits for the result of a job that was perhaps sent, and counts it. */
async function* countResult(
  { findResults }: StepDeps,
  { operation }: OpenOperation,
  job: string,
): Steps<JobResult['receipts']> {
  let results = await findResults([job])
  for (; results.has(job) && !results.get(job); results = await findResults([job]))
    yield* pauseStep()
  const { receipts = [] } = results.get(job) ?? {}
  const isErasure = operation.kind === 'erase'
  const counts = receipts.map((receipt) => {
    if (receipt?.source.outcome !== 'deleted') return 0
    return isErasure && 'quotes' in receipt.source ? receipt.source.quotes : 1
  })
  yield {
    examined: isErasure ? 0 : receipts.length,
    done: counts.reduce((sum, count) => sum + count, 0),
    failed: receipts.includes(null) ? 1 : 0,
    after: { job: undefined },
  }
  return receipts
}

export async function* pauseStep(ms = LOOK_MS): Steps {
  await delay(ms)
  yield {}
}

function undefinedIfFull(error: unknown): undefined {
  if (!(error instanceof QueueFullError)) throw error
}
