// Finds a job by its id and describes it as its caller may see it.
import type { JobState, Thread } from '@sluice/contract'
import type { Job } from 'bullmq'
import { type IngestJob, type JobResult, readProgress, triesShown } from '../job/job.ts'
import type { Queues } from '../job/lanes.ts'
import type { Results } from './results.ts'

/** A job as its caller may see it. */
export interface FoundJob {
  tenant: string
  thread: Thread
  state: JobState
  changedAt: Date
  attempts: number
  result?: JobResult
}

type RetainedResults = Pick<Results, 'findRetained'>

/** Finds a job of one thread by its id: its retained result, else BullMQ's job. */
export async function findJob(queues: Queues, results: RetainedResults, id: string): Promise<FoundJob | undefined> {
  const completed = await findCompleted(results, id)
  if (completed !== undefined) return completed
  const job = (await queues.interactive.getJob(id)) ?? (await queues.bulk.getJob(id))
  // The job may have completed between the two lookups.
  return (job && (await describe(job))) ?? findCompleted(results, id)
}

async function findCompleted(results: RetainedResults, id: string): Promise<FoundJob | undefined> {
  const retained = await results.findRetained(id)
  if (retained === undefined) return undefined
  const { data, at, attempts, result } = retained
  const about = ofOneThread(JSON.parse(data))
  return about && { ...about, state: 'completed', changedAt: new Date(at), attempts, result }
}

async function describe(job: Job<IngestJob>): Promise<FoundJob | undefined> {
  const about = ofOneThread(job.data)
  if (about === undefined) return undefined
  const state = await job.getState()
  if (state === 'unknown') return undefined
  const { timestamp, finishedOn = timestamp, processedOn = timestamp, failedReason: failure } = job
  const attempts = triesShown(job.attemptsMade)
  if (state === 'failed') {
    const result = { receipts: [null], failure }
    return { ...about, state, changedAt: new Date(finishedOn), attempts, result }
  }
  if (state === 'active') return { ...about, state, changedAt: new Date(processedOn), attempts: attempts + 1 }
  return {
    ...about,
    state: 'waiting',
    changedAt: new Date(readProgress(job.progress).waitingSince ?? timestamp),
    attempts,
  }
}

/** Undefined for a job of several threads: it belongs to an import, and only operators need its id. */
function ofOneThread({ tenant, threads }: IngestJob): { tenant: string; thread: Thread } | undefined {
  const [thread] = threads
  return thread === undefined || threads.length > 1 ? undefined : { tenant, thread }
}
