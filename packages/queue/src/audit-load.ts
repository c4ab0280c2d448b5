// Keeps the count of the load true if jobs are removed behind Sluice's back, as by BullMQ's own tools.
import type { Redis } from 'ioredis'
import type { QueueKeys } from './bullmq-layout/names.ts'
import { loadScript } from './script.ts'

const auditScript = loadScript(new URL('./bullmq-layout/load.lua#audit', import.meta.url))

/** Jobs that one call checks: a full queue of 200,000 takes half an hour at a call every five seconds, and Redis spends 0.5 ms on each call. */
const JOBS_AT_ONCE = 500

/** Makes a function that checks the next few jobs, and removes those that are gone from the load. */
export function createLoadAudit(redis: Redis, { base, jobs }: QueueKeys): () => Promise<void> {
  const audit = auditScript(redis)
  let cursor = '0'
  return async () => {
    cursor = String(await audit(base, cursor, JOBS_AT_ONCE, jobs.interactive, jobs.bulk))
  }
}
