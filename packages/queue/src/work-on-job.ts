import { type Job, UnrecoverableError, WaitingError } from 'bullmq'
import { type IngestJob, type Lane, TRIES } from './ingest-job.ts'
import { allTries, progressOf, triesMade } from './job-progress.ts'
import type { Turns } from './lone-turn.ts'
import type { Receipt } from './receipt.ts'
import type { EndedJob } from './results.ts'
import { describeTaken, endedJob, receiptsOf, type TakenJob } from './taken-job.ts'

/** What working on a job came to. `away`: nothing is wrong with the job, it waits until the store is back and loses no try. Throwing means another try. */
export type Worked = { receipts: Receipt[] } | { away: true }

/** What a job is worked on by. */
export interface JobHandlers {
  work: (job: TakenJob) => Promise<Worked>
  /** Keeps and replies what the job came to; the job is done only after it. */
  end: (job: EndedJob) => Promise<void>
  onFailed: (job: TakenJob, reason: string, final: boolean) => void
  onError: (error: Error) => void
}

/**
 * Works on a job once. Where the store is away, or another job has the process to itself, it goes back to waiting and loses no try.
 *
 * @throws what BullMQ takes for a failed try, for the last one (`UnrecoverableError`), or for a job that waits again.
 */
export async function workOn(
  job: Job<IngestJob>,
  lane: Lane,
  token: string | undefined,
  turns: Turns,
  handlers: JobHandlers,
): Promise<void> {
  const taken = describeTaken(job, lane)
  if (taken.attempt > TRIES)
    throw new UnrecoverableError(`gave up after ${TRIES} tries; the last one crashed or froze its worker`)
  const worked = await turns.take(taken.suspect, () =>
    taken.suspect ? countedTry(job, taken, handlers) : tryWork(taken, handlers),
  )
  if (worked === undefined || 'away' in worked) {
    await job.updateProgress({ ...progressOf(job), waitingSince: Date.now() })
    await job.moveToWait(token)
    throw new WaitingError()
  }
  await handlers.end(endedJob(taken, { receipts: worked.receipts }))
}

/** Counts the try as a crash until its end is known. */
async function countedTry(job: Job<IngestJob>, taken: TakenJob, handlers: JobHandlers): Promise<Worked> {
  const { crashes = 0, ...progress } = progressOf(job)
  await job.updateProgress({ ...progress, crashes: crashes + 1 })
  try {
    return await tryWork(taken, handlers)
  } finally {
    await job.updateProgress({ ...progress, crashes })
  }
}

async function tryWork(taken: TakenJob, { work }: JobHandlers): Promise<Worked> {
  try {
    return await work(taken)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    // BullMQ counts failed tries and crashes apart.
    if (taken.attempt < TRIES) throw error
    throw Object.assign(new UnrecoverableError(reason), { cause: error })
  }
}

/** Keeps and tells what a failed try means. BullMQ has already counted it. */
export async function endFailed(
  job: Job<IngestJob>,
  lane: Lane,
  error: Error,
  { end, onFailed, onError }: JobHandlers,
): Promise<void> {
  const taken = { ...describeTaken(job, lane), attempt: Math.min(triesMade(job), TRIES) }
  const final = job.finishedOn !== undefined
  onFailed(taken, error.message, final)
  try {
    if (final) await end(endedJob(taken, { receipts: receiptsOf(error, taken), failure: error.message }))
    const ended = final ? { given: taken.attempt, earlier: allTries(job) } : { waitingSince: Date.now() }
    await job.updateProgress({ ...progressOf(job), ...ended })
  } catch (failure) {
    onError(failure instanceof Error ? failure : new Error(String(failure)))
  }
}
