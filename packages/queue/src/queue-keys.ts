import type { Lane } from './ingest-job.ts'

/** Where one queue's things lie in Redis. All of them share a hash tag, so that a cluster keeps them on one node and scripts may touch several. */
export interface QueueKeys {
  /** BullMQ's own prefix. */
  prefix: string
  /** What stands before everything that is Sluice's own. */
  base: string
  /** The name that BullMQ knows each lane's queue by. */
  queues: Readonly<Record<Lane, string>>
  /** What stands before BullMQ's jobs of a lane: `jobs.waiting + id`. */
  jobs: Readonly<Record<Lane, string>>
}

/** Names the keys of a queue. */
export function queueKeys(queue: string): QueueKeys {
  const prefix = `{${queue}}`
  const queues = { waiting: queue, bulk: `${queue}-bulk` }
  const jobs = { waiting: `${prefix}:${queues.waiting}:`, bulk: `${prefix}:${queues.bulk}:` }
  return { prefix, base: `${prefix}:sluice:`, queues, jobs }
}
