import type { JobState, Thread } from '@sluice/contract'
import type { Job, Queue } from 'bullmq'
import type { Ending } from './ending.ts'
import { type IngestJob, type Lane, TRIES } from './ingest-job.ts'
import { progressOf, triesMade } from './job-progress.ts'
import type { Results } from './results.ts'

/** A job as the one who was told its id may see it. */
export interface FoundJob {
  tenant: string
  thread: Thread
  state: JobState
  changedAt: Date
  attempts: number
  ending?: Ending
}

/** Finds a job of one thread by its id: what is kept of a finished one, else what BullMQ has. */
export async function findJob(
  queues: Readonly<Record<Lane, Queue<IngestJob>>>,
  results: Results,
  id: string,
): Promise<FoundJob | undefined> {
  const kept = await findKept(results, id)
  if (kept !== undefined) return kept
  const job = (await queues.waiting.getJob(id)) ?? (await queues.bulk.getJob(id))
  // Between the two looks it may have finished.
  return (job && (await describe(job))) ?? findKept(results, id)
}

async function findKept(results: Results, id: string): Promise<FoundJob | undefined> {
  const kept = await results.kept(id)
  if (kept === undefined) return undefined
  const job: IngestJob = JSON.parse(kept.data)
  const about = ofOneThread(job)
  return (
    about && {
      ...about,
      state: 'completed',
      changedAt: new Date(kept.at),
      attempts: kept.attempts,
      ending: kept.ending,
    }
  )
}

async function describe(job: Job<IngestJob>): Promise<FoundJob | undefined> {
  const about = ofOneThread(job.data)
  if (about === undefined) return undefined
  const state = await job.getState()
  if (state === 'unknown') return undefined
  const found = { ...about, attempts: Math.min(triesMade(job), TRIES) }
  if (state === 'failed') {
    const changedAt = new Date(job.finishedOn ?? job.timestamp)
    const attempts = progressOf(job).given ?? found.attempts
    return { ...found, state: 'failed', changedAt, attempts, ending: { receipts: [null], failure: job.failedReason } }
  }
  if (state === 'active') {
    return {
      ...found,
      state: 'active',
      changedAt: new Date(job.processedOn ?? job.timestamp),
      attempts: found.attempts + 1,
    }
  }
  return { ...found, state: 'waiting', changedAt: new Date(progressOf(job).waitingSince ?? job.timestamp) }
}

/** The id of a job that carries a part of a batch was never told to anybody. */
function ofOneThread({ tenant, threads }: IngestJob): { tenant: string; thread: Thread } | undefined {
  const [thread] = threads
  return thread === undefined || threads.length > 1 ? undefined : { tenant, thread }
}
