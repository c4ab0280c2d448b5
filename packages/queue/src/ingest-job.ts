import type { Thread } from '@sluice/contract'

/** What a job carries: accepted threads, one where somebody waits for it, some fifty where they came in bulk. */
export interface IngestJob {
  tenant: string
  /** The first thread's place in the one order of acceptance, in µs since 1970; each other one's is one more than the one's before it. */
  stamp: number
  requestId: string
  /** The caller was told the job's id at once, so its result is kept for it. */
  told: boolean
  /** The API replica whose caller waits for the result. */
  replyTo?: string
  /** The batch that it is a part of, where nobody waits for it, and the places of its threads there. */
  batch?: { id: string; places: number[] }
  threads: Thread[]
}

/** Jobs whose callers wait, and those that came in bulk, travel apart, so that neither keeps the other from being worked on. */
export type Lane = 'waiting' | 'bulk'

/** Both lanes. */
export const LANES: readonly Lane[] = ['waiting', 'bulk']

/** Tries that a job gets before it fails for good, crashes of its worker included. */
export const TRIES = 5

/** Failed jobs are the dead letters: kept for thirty days, in seconds. */
export const FAILED_KEPT_S = 30 * 24 * 60 * 60

/** How people find the job: what it is about. */
export function jobName(threads: readonly Thread[]): string {
  const [first, last] = [threads[0], threads.at(-1)].map(
    (thread) => thread && `${thread.source.service}/${thread.source.externalId}`,
  )
  return threads.length === 1 ? `${first}` : `${first} … ${last} (${threads.length})`
}

/** What the store knows a job's thread by: unique to it, and the same each time the job is delivered. */
export function requestIdsOf(jobId: string, { threads }: IngestJob): string[] {
  return threads.length === 1 ? [jobId] : threads.map((_, at) => `${jobId}.${at}`)
}

/**
 * How BullMQ is to treat each job. Every job has an id of its own: an id made of what it is about would hang whoever asks second, and without an
 * id a resent command would add it twice. Its tries are counted by the consumer, so that who has it run again gives it new ones.
 */
export const JOB_OPTIONS = JSON.stringify({ attempts: Number.MAX_SAFE_INTEGER, backoff: { type: 'tries' } })
