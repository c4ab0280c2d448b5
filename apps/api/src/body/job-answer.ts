// The answers of jobs that completed, built from the request and the receipt that Redis keeps.
import type { JobAnswer, Thread, ThreadAnswer } from '@sluice/contract'
import { type IngestJob, type JobResult, type Receipt, readReceipt } from '@sluice/queue/job'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'

/** A job that completed, without its answer. */
export type CompletedJob = Pick<JobAnswer, 'id' | 'state' | 'changedAt' | 'attempts'>

/** Builds the answer of GET /jobs/{id} in JSON from a job's payload and its result, which are JSON too. */
export function completedAnswer(job: CompletedJob, texts: Readonly<Record<'data' | 'result', Buffer>>): Buffer {
  const { tenant, threads }: IngestJob = JSON.parse(texts.data.toString())
  const { receipts }: JobResult = JSON.parse(texts.result.toString())
  const [[thread], [receipt]] = [threads, receipts]
  // An operator needs a job of several threads, and no caller.
  if (!thread || !receipt || threads.length > 1) return Buffer.alloc(0)
  return Buffer.from(JSON.stringify({ ...job, result: threadAnswer(tenant, thread, receipt) } satisfies JobAnswer))
}

/** Builds the answer of a stored thread from its request and the receipt of its job. */
export function threadAnswer(tenant: string, thread: Thread, receipt: Receipt): ThreadAnswer {
  const source = sourceIdOf(tenant, thread.source)
  return readReceipt(thread, receipt, { source, quotes: quoteIdsOf(source, thread.quotes) })
}
