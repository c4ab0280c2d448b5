import { type Job, UnrecoverableError } from 'bullmq'
import { asError } from './as-error.ts'
import type { EndedJob } from './end-jobs.ts'
import { type IngestJob, TRIES } from './ingest-job.ts'
import { allTries, progressOf, triesMade } from './job-progress.ts'
import type { Turns } from './lone-turn.ts'
import type { Receipt } from './receipt.ts'
import type { HeldJob } from './take-jobs.ts'
import { describeTaken, endedJob, receiptsOf, type TakenJob } from './taken-job.ts'

/** What working on a job came to. `away`: nothing is wrong with the job, it waits until the store is back and loses no try. Throwing means another try. */
export type Worked = { receipts: Receipt[] } | { away: true }

/** What a job is worked on by. */
export interface JobHandlers {
  work: (job: TakenJob) => Promise<Worked>
  /** Keeps and replies what the job came to, and takes it off the queue where it succeeded. */
  end: (job: EndedJob) => Promise<void>
  onFailed: (job: TakenJob, reason: string, final: boolean) => void
  onError: (error: Error) => void
}

/**
 * Works on a held job once, and lets the queue know what came of it. Where the store is away, or another job has the process to itself, it goes back
 * to waiting and loses no try.
 *
 * @param find gives BullMQ's own view of the job, for what is rare.
 * @throws where the queue could not be told: the job goes to another worker when its lock runs out.
 */
export async function workOn(
  held: HeldJob,
  find: () => Promise<Job<IngestJob> | undefined>,
  turns: Turns,
  handlers: JobHandlers,
): Promise<void> {
  const taken = describeTaken(held)
  try {
    const worked = await tryOnce(held, taken, find, turns, handlers)
    if ('away' in worked) return await putBack(held, find)
    await handlers.end(endedJob(taken, { receipts: worked.receipts }, held.token))
  } catch (error) {
    await fail(held, asError(error), find, handlers)
  }
}

async function tryOnce(
  held: HeldJob,
  taken: TakenJob,
  find: () => Promise<Job<IngestJob> | undefined>,
  turns: Turns,
  handlers: JobHandlers,
): Promise<Worked> {
  if (taken.attempt > TRIES)
    throw new UnrecoverableError(`gave up after ${TRIES} tries; the last one crashed or froze its worker`)
  const worked = await turns.take(taken.suspect, () =>
    taken.suspect ? countedTry(held, taken, find, handlers) : tryWork(taken, handlers),
  )
  return worked ?? { away: true }
}

async function putBack({ token, progress }: HeldJob, find: () => Promise<Job<IngestJob> | undefined>): Promise<void> {
  const job = await find()
  await job?.updateProgress({ ...progress, waitingSince: Date.now() })
  await job?.moveToWait(token)
}

/** Counts the try as a crash until its end is known. */
async function countedTry(
  { progress }: HeldJob,
  taken: TakenJob,
  find: () => Promise<Job<IngestJob> | undefined>,
  handlers: JobHandlers,
): Promise<Worked> {
  const { crashes = 0, ...others } = progress
  const job = await find()
  await job?.updateProgress({ ...others, crashes: crashes + 1 })
  try {
    return await tryWork(taken, handlers)
  } finally {
    await job?.updateProgress({ ...others, crashes })
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

/** Has BullMQ count a failed try, then keeps and tells what it means. */
async function fail(
  held: HeldJob,
  failure: Error,
  find: () => Promise<Job<IngestJob> | undefined>,
  { end, onFailed }: JobHandlers,
): Promise<void> {
  const job = await find()
  if (job === undefined) return
  await job.moveToFailed(failure, held.token)
  const taken = { ...describeTaken(held), attempt: Math.min(triesMade(job), TRIES) }
  const final = job.finishedOn !== undefined
  onFailed(taken, failure.message, final)
  if (final) await end(endedJob(taken, { receipts: receiptsOf(failure, taken), failure: failure.message }))
  const ended = final ? { given: taken.attempt, earlier: allTries(job) } : { waitingSince: Date.now() }
  await job.updateProgress({ ...progressOf(job), ...ended })
}
