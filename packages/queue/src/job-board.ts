import type { JobState } from '@sluice/contract'
import type { Job, Queue } from 'bullmq'
import { type IngestJob, TRIES } from './ingest-job.ts'
import { progressOf, triesMade } from './job-progress.ts'
import type { Ending, Results } from './results.ts'

/** A job as the one who was told its id may see it. */
export interface FoundJob {
  job: IngestJob
  state: JobState
  changedAt: Date
  attempts: number
  ending?: Ending
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
  const found = { job: job.data, attempts: Math.min(triesMade(job), TRIES) }
  if (state === 'failed') {
    const changedAt = new Date(job.finishedOn ?? job.timestamp)
    const attempts = progressOf(job).given ?? found.attempts
    return { ...found, state: 'failed', changedAt, attempts, ending: { failure: job.failedReason } }
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
