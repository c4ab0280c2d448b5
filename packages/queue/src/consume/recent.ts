// The line about a job that completed, in the list of those that completed last.
import type { Hit, Outcome } from '@sluice/contract'
import { traceIdOf } from '@sluice/process'
import type { CompletedJob } from '../job/job.ts'

/** What is listed of a completed job. Times are in ms since 1970. */
function factsOf({ id, name, data, attempt, enqueuedAt, result }: CompletedJob, worker: string) {
  const counts: Record<Outcome, number> = { created: 0, updated: 0, unchanged: 0 }
  for (const receipt of result.receipts) if (receipt) counts[receipt.source.outcome] += 1
  const { tenant, threads, requestId, trace } = data
  const { created, updated, unchanged } = counts
  const ids = [id, tenant, name, threads.length, requestId, data.import?.id ?? ''] as const
  return [...ids, created, updated, unchanged, attempt, enqueuedAt, worker, trace ? traceIdOf(trace) : ''] as const
}

/** Describes a completed job in one line of some 150 bytes. @param worker names the process that completed it. */
export function recentLine(job: CompletedJob, worker: string): string {
  return JSON.stringify(factsOf(job, worker))
}

/** Reads a line. @param entry the id of its entry, which begins with the time (ms) at which the job completed. */
export function readRecent(entry: string, line: string): Hit {
  const fields: ReturnType<typeof factsOf> = JSON.parse(line)
  const [id, tenant, name, threads, requestId, importId, ...facts] = fields
  const [created, updated, unchanged, attempts, enqueuedAt, worker, traceId] = facts
  return {
    kind: 'job',
    id,
    tenant,
    state: 'completed',
    name,
    threads,
    requestId,
    ...(importId !== '' && { importId }),
    ...(traceId !== '' && { traceId }),
    acceptedAt: new Date(enqueuedAt).toISOString(),
    endedAt: new Date(Number.parseInt(entry, 10)).toISOString(),
    attempts,
    outcomes: { created, updated, unchanged },
    worker,
  }
}
