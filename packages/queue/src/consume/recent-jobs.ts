// The list of the jobs that completed last: complete.lua writes a line about each of them.
import type { Hit, Outcome } from '@sluice/contract'
import { traceIdOf } from '@sluice/process'
import type { CompletedJob } from '../job/job.ts'

/** Makes the line about a completed job, a list of about 160 bytes. Times are in ms since 1970. */
export function recentLine({ id, name, data, attempt, enqueuedAt, result }: CompletedJob, worker: string) {
  const counts: Record<Outcome, number> = { created: 0, updated: 0, unchanged: 0 }
  for (const receipt of result.receipts) if (receipt) counts[receipt.source.outcome] += 1
  const { tenant, threads, requestId, trace, keyId } = data
  const { created, updated, unchanged } = counts
  const ids = [id, tenant, name, threads.length, requestId, data.import?.id ?? ''] as const
  const facts = [created, updated, unchanged, attempt, enqueuedAt, worker] as const
  return [...ids, ...facts, trace ? traceIdOf(trace) : '', keyId] as const
}

/** Reads a line about a completed job. @param entry the id of its entry, which begins with the time (ms). */
export function readRecent(entry: string, line: string): Hit {
  const fields: ReturnType<typeof recentLine> = JSON.parse(line)
  const [id, tenant, name, threads, requestId, importId, ...facts] = fields
  const [created, updated, unchanged, attempts, enqueuedAt, worker, traceId, keyId] = facts
  return {
    kind: 'job',
    id,
    tenant,
    state: 'completed',
    name,
    threads,
    requestId,
    ...(keyId && { keyId }),
    ...(importId !== '' && { importId }),
    ...(traceId !== '' && { traceId }),
    acceptedAt: new Date(enqueuedAt).toISOString(),
    endedAt: new Date(Number.parseInt(entry, 10)).toISOString(),
    attempts,
    outcomes: { created, updated, unchanged },
    worker,
  }
}
