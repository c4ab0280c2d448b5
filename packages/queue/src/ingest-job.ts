import type { Thread } from '@sluice/contract'
import type { JobsOptions } from 'bullmq'

/** What a job carries: one accepted request. */
export interface IngestJob {
  tenant: string
  /** The request's place in the one order of acceptance, in µs since 1970. */
  stamp: number
  requestId: string
  /** The caller was told the job's id at once, so its result is kept for it. */
  told: boolean
  /** The API replica whose caller waits for the result. */
  replyTo?: string
  thread: Thread
}

/** Tries that a job gets before it fails for good, crashes of its worker included. */
export const TRIES = 5

/** Failed jobs are the dead letters: kept for thirty days, in seconds. */
export const FAILED_KEPT_S = 30 * 24 * 60 * 60

/** How people find the job: what it is about. */
export function jobName({ source }: Thread): string {
  return `${source.service}/${source.externalId}`
}

/**
 * Every request is a job of its own under an id of its own: an id made of what it is about would hang whoever asks second, and without an
 * id a resent command would add it twice.
 */
export function jobOptions(jobId: string): JobsOptions {
  return { jobId, attempts: TRIES, backoff: { type: 'exponential', delay: 500, jitter: 0.5 } }
}
