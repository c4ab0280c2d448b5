// Claims of idempotency keys: the job that a key of a tenant stands for, and that job's result. enqueue.lua makes them.
import { hash } from 'node:crypto'
import type { Thread } from '@sluice/contract'
import { openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import type { CompletedJob, Lane } from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'

/** How long a claim stays, unless it is evicted. */
export const CLAIM_MS = 24 * 60 * 60 * 1000

/** A job's claim on the key of its request. */
export type Claim = ReturnType<typeof makeClaim>

/** Names a claim by a hash: a key may be its caller's secret. Equal keys of two tenants have different claims. */
export function claimName(tenant: string, key: string): string {
  return hash('sha256', JSON.stringify([tenant, key]), 'base64url')
}

/** Makes a job's claim. Its fingerprint has the lane: callers that wait get another answer than those that do not. */
export function makeClaim(name: string, lane: Lane, threads: readonly Thread[]) {
  return { name, fingerprint: `${lane} ${hash('sha256', JSON.stringify(threads), 'base64url')}` }
}

/** Makes a function that stores the results of jobs in their claims, but not of a failed job: its key is free again. */
export function createRecordClaims(redis: Redis, { base }: QueueKeys, claimBytes: number) {
  const record = openScript(redis, new URL('./claims.lua#record', import.meta.url))
  return async (jobs: readonly Pick<CompletedJob, 'id' | 'data' | 'result'>[]): Promise<void> => {
    let args = jobs.flatMap(({ id, data: { claim }, result }) =>
      claim === undefined || result.failure !== undefined ? [] : [claim, id, JSON.stringify(result)],
    )
    while ((await record(base, CLAIM_MS, claimBytes, ...args)) === 1) args = []
  }
}
