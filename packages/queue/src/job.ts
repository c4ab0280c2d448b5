// A job as it lies in the queue: its payload, its lanes, and how BullMQ treats it.
import type { Thread } from '@sluice/contract'

/** A job's payload: accepted threads. A caller that waits for one thread has a job of its own; an import has some fifty threads in each job. */
export interface IngestJob {
  tenant: string
  /** The first thread's place in the one order of acceptance, in µs since 1970. Each following thread's stamp is one more. */
  stamp: number
  requestId: string
  /** The caller got the job's id with its answer, so the job's result is retained. */
  retained: boolean
  /** The API replica that waits for the result. */
  replyTo?: string
  /** The import that the job belongs to, and the threads' places in it. Only of imports that nobody waits for. */
  import?: { id: string; places: number[] }
  threads: Thread[]
}

/** Callers wait for interactive jobs, nobody waits for bulk jobs. Each lane is a queue of its own, so that neither delays the other. */
export type Lane = 'interactive' | 'bulk'

/** Both lanes. */
export const LANES: readonly Lane[] = ['interactive', 'bulk']

/** Tries that a job gets before it fails for good, crashes of its worker included. */
export const TRIES = 5

/** Failed jobs are the dead letters: they are kept for thirty days. In seconds. */
export const FAILED_KEPT_S = 30 * 24 * 60 * 60

/**
 * BullMQ's options of each job. Each job has an id of its own: an id derived from the thread would make a second caller wait for the first one's
 * job, and without an id a command that is sent again would add the job twice. The consumer counts the tries itself, so that a job that is
 * retried by hand gets a full set of new ones.
 */
export const JOB_OPTIONS = JSON.stringify({ attempts: Number.MAX_SAFE_INTEGER, backoff: { type: 'tries' } })
