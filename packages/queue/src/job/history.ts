// The earlier tries of a job that was delivered before.
import type { Job } from 'bullmq'
import { type JobProgress, type LockedJob, TRIES } from './job.ts'

/** What BullMQ keeps of a job's earlier tries. `progress` is a number until `updateProgress` wrote it. */
export type JobHistory = Pick<Job, 'attemptsMade' | 'stalledCounter' | 'progress'>

/** Reads a job's history as Redis keeps it. */
export function readHistory(made: unknown, stalled: unknown, progress: unknown): JobHistory {
  return {
    attemptsMade: Number(made ?? 0),
    stalledCounter: Number(stalled ?? 0),
    progress: typeof progress === 'string' && progress.startsWith('{') ? JSON.parse(progress) : {},
  }
}

/** Returns Sluice's own part of a job's history. */
export function jobProgressOf({ progress }: Pick<Job, 'progress'>): JobProgress {
  return typeof progress === 'object' ? progress : {}
}

/**
 * Counts a job's tries since it was last retried by hand: those that failed, and those that its worker did not survive.
 * BullMQ counts a crash against every job that the worker had locked. Here only the first one counts, and then crashes in
 * exclusive tries.
 */
export function triesMade(job: JobHistory): number {
  const { crashes = 0, earlier = 0 } = jobProgressOf(job)
  return job.attemptsMade + Math.min(job.stalledCounter, 1) + crashes - earlier
}

/** Describes a job that was delivered before. */
export function withHistory(job: LockedJob, history: JobHistory): LockedJob {
  const suspect = history.stalledCounter > 0
  return { ...job, attempt: triesMade(history) + 1, suspect, progress: jobProgressOf(history) }
}

/** Counts the tries of a failed job since it was last retried by hand. */
export function triesOfFailed(job: JobHistory): number {
  return Math.min(triesMade(job), TRIES)
}
