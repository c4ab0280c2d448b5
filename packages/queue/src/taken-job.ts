import type { Thread } from '@sluice/contract'
import type { EndedJob } from './end-jobs.ts'
import type { IngestJob, Lane } from './ingest-job.ts'
import { triesMade } from './job-progress.ts'
import type { Receipt } from './receipt.ts'
import type { HeldJob } from './take-jobs.ts'

/** A job as a worker gets it. */
export interface TakenJob {
  id: string
  lane: Lane
  data: IngestJob
  /** Names what its one thread says; none where it has several. */
  digest?: string
  /** Which try this is, from 1; crashes of its workers count. */
  attempt: number
  /** Somebody may have worked on it before without finishing. */
  redelivered: boolean
  /** A worker crashed or froze while it had the job, so the job may be why. */
  suspect: boolean
  enqueuedAt: number
}

/** Some of a job's threads could not be stored; the others were. */
export class PartlyStoredError extends Error {
  readonly receipts: (Receipt | null)[]

  constructor(reason: string, receipts: (Receipt | null)[]) {
    super(reason)
    this.name = 'PartlyStoredError'
    this.receipts = receipts
  }
}

/** Tells a worker of the job that it has just taken. */
export function describeTaken(job: HeldJob): TakenJob {
  return {
    id: job.id,
    lane: job.lane,
    data: job.data,
    ...(job.digest !== undefined && { digest: job.digest }),
    attempt: triesMade(job) + 1,
    redelivered: job.attemptsStarted > 1,
    suspect: job.stalledCounter > 0,
    enqueuedAt: job.timestamp,
  }
}

/** A taken job with what it came to. `token` where it is done and may go. */
export function endedJob({ id, lane, data, attempt }: TakenJob, ending: EndedJob['ending'], token?: string): EndedJob {
  return {
    id,
    lane,
    told: data.told,
    attempts: attempt,
    ending,
    ...(token !== undefined && { token }),
    ...(data.replyTo !== undefined && { replyTo: data.replyTo }),
    ...(data.batch !== undefined && { batch: { id: data.batch.id, items: itemsOf(data.threads, data.batch.places) } }),
  }
}

function itemsOf(threads: readonly Thread[], places: readonly number[]) {
  return threads.map(({ source }, at) => ({ index: places[at] ?? at, externalId: source.externalId }))
}

/** A job that failed may have stored some of its threads all the same. */
export function receiptsOf({ cause }: Error, { data }: TakenJob): (Receipt | null)[] {
  return cause instanceof PartlyStoredError ? cause.receipts : data.threads.map(() => null)
}
