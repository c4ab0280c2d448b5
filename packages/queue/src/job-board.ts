import type { JobState } from '@sluice/contract'
import type { Job, Queue } from 'bullmq'
import type { IngestJob } from './ingest-job.ts'
import type { Ending, Results } from './results.ts'

/** A job as the one who was told its id may see it. */
export interface FoundJob {
  job: IngestJob
  state: JobState
  changedAt: Date
  attempts: number
  ending?: Ending
}

/** What a job that goes back to waiting keeps of the moment at which it did. */
export interface JobProgress {
  waitingSince: number
}

/** Finds a job by its id: what is kept of a finished one, else what BullMQ has. */
export async function findJob(queue: Queue<IngestJob>, results: Results, id: string): Promise<FoundJob | undefined> {
  const kept = await findKept(results, id)
  if (kept !== undefined) return kept
  const job = await queue.getJob(id)
  // Between the two looks it may have finished.
  return job === undefined ? findKept(results, id) : describe(job)
}

async function findKept(results: Results, id: string): Promise<FoundJob | undefined> {
  const kept = await results.kept(id)
  if (kept === undefined) return undefined
  const job: IngestJob = JSON.parse(kept.data)
  return { job, state: 'completed', changedAt: new Date(kept.at), attempts: kept.attempts, ending: kept.ending }
}

async function describe(job: Job<IngestJob>): Promise<FoundJob | undefined> {
  const state = await job.getState()
  const found = { job: job.data, attempts: job.attemptsMade + job.stalledCounter }
  if (state === 'failed') {
    const changedAt = new Date(job.finishedOn ?? job.timestamp)
    return { ...found, state: 'failed', changedAt, ending: { failure: job.failedReason } }
  }
  if (state === 'active') {
    return { ...found, state: 'active', changedAt: new Date(job.processedOn ?? job.timestamp), attempts: found.attempts + 1 }
  }
  return { ...found, state: 'waiting', changedAt: new Date(waitingSince(job)) }
}

function waitingSince({ progress, timestamp }: Job<IngestJob>): number {
  return typeof progress === 'object' && 'waitingSince' in progress ? Number(progress.waitingSince) : timestamp
}
