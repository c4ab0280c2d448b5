import type { Job } from 'bullmq'

/** What a job keeps of its way so far, beside what BullMQ keeps of it. */
export interface JobProgress {
  /** When it went back to waiting, in ms since 1970. */
  waitingSince?: number
  /** Tries, with its worker to itself, that were begun and of which no end is known. */
  crashes?: number
  /** Once it has failed for good: the tries that it was given. */
  given?: number
  /** And all that it was ever given; who has it run again gives it new ones. */
  earlier?: number
}

type Way = Pick<Job, 'attemptsMade' | 'stalledCounter' | 'progress'>

/** Reads what `updateProgress` wrote. */
export function progressOf({ progress }: Pick<Job, 'progress'>): JobProgress {
  return typeof progress === 'object' ? progress : {}
}

/**
 * Tries that a job has behind it, since it was last run again: those that failed, and those that its worker did not survive. BullMQ counts a
 * crash against every job that the worker held; here the first one counts, and after it those in tries that the job had to itself.
 */
export function triesMade(job: Way): number {
  return allTries(job) - (progressOf(job).earlier ?? 0)
}

/** Tries that a job has behind it, in all. */
export function allTries(job: Way): number {
  return job.attemptsMade + Math.min(job.stalledCounter, 1) + (progressOf(job).crashes ?? 0)
}
