// Records that a job failed for good, and retries or discards failed jobs.

import type { OperationKind, RecordedTry } from '@sluice/contract'
import { asList, openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import { importBounds, progressOf } from '../imports/imports.ts'
import { type Failure, TRIES } from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'

/** Receives the id of each failed job that was evicted. */
export type OnEvicted = (jobId: string) => void

const FAILED_KEPT_MS = 30 * 24 * 60 * 60 * 1000

/**
 * Makes a function that records the final failure of a job with its result, and evicts the oldest failed jobs beyond
 * their bound. A job that was retried or discarded meanwhile stays as it is, so the function may be called again.
 *
 * @param failedBytes the most bytes of Redis for all failed jobs, as BullMQ keeps them.
 */
export function createRecordFailure(redis: Redis, keys: QueueKeys, failedBytes: number, onEvicted: OnEvicted) {
  const { base, jobs } = keys
  const record = openScript(redis, new URL('./failed-set.lua#record', import.meta.url))
  const lanes = [jobs.interactive, jobs.bulk]
  const bounds = { keptMs: FAILED_KEPT_MS, bytes: failedBytes, lanes, imports: importBounds() }
  return async (failure: Failure): Promise<void> => {
    const { id, lane, data, failedAt, result } = failure
    const { tenant, replyTo: stream, import: { id: ofImport } = {} } = data
    const about = { id, lane: jobs[lane], failedAt, result: JSON.stringify(result), tenant, stream }
    const job = { ...about, ...(ofImport !== undefined && { import: ofImport, outcome: progressOf(failure) }) }
    let input: object = { ...bounds, job }
    for (let more: unknown = 1; more === 1; input = bounds) {
      const reply = asList(await record(base, JSON.stringify(input)))
      for (const evicted of asList(reply[1])) onEvicted(String(evicted))
      more = reply[0]
    }
  }
}

/**
 * Makes a function that retries or discards these jobs, if they are failed, and returns the number of jobs moved. `by`
 * is who asked for it.
 */
export function createMoveFailed(redis: Redis, { base, jobs }: QueueKeys) {
  const move = openScript(redis, new URL('./failed-set.lua#move', import.meta.url))
  return async (kind: OperationKind, ids: readonly string[], by: string): Promise<number> => {
    if (ids.length === 0) return 0
    const retry: RecordedTry = { at: new Date().toISOString(), worker: '', reason: '', retriedBy: by }
    return Number(await move(base, kind, jobs.interactive, jobs.bulk, JSON.stringify(retry), TRIES, ...ids))
  }
}
