// Consumes the queue: both lanes, which pause and close together, within one process.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'
import { LANES, type Lane, type LockedJob } from '../job/job.ts'
import type { ResultBounds } from '../replies/results.ts'
import { createComplete } from './complete.ts'
import { consumeLane } from './consume-lane.ts'
import { createExclusiveRun, createPauses } from './exclusive-run.ts'
import { createRecordFailure, type JobHandlers } from './fail-job.ts'

/** The options of a consumer. */
export interface ConsumerOptions extends JobHandlers {
  keys: QueueKeys
  /** A connection that retries; each lane opens a blocking one like it. */
  redis: Redis
  resultBounds: ResultBounds
  /** How many bytes of Redis the claims of idempotency keys may take. Beyond it, the tenant with the most loses its oldest claims first. */
  claimBytes: number
  /** How many bytes of Redis failed jobs may take. Beyond it, the oldest are evicted first. */
  failedBytes: number
  /** How many jobs of each lane this process locks at a time. */
  concurrency: Readonly<Record<Lane, number>>
  /** How many bytes of job data this process locks at a time. A job that exceeds its lane's share is locked as the only one of its lane. */
  bytesInHand: number
  /** Resolves when the worker would work on jobs of this lane at once. Until then they wait in the queue, where every worker can fetch them. */
  ready: (lane: Lane) => Promise<void>
}

/** Fetches jobs until it is closed. */
export interface Consumer {
  /** Stops fetching until `resume` was called as often. A blocked connection may still get a few jobs. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Stops fetching and waits for the locked jobs, for at most so long (ms). The locks of the others expire, and other workers fetch them. */
  close(graceMs: number): Promise<void>
}

/** Each lane's share of the bytes in hand. Lanes fetch side by side, so that they can't share one bound without waiting for each other. */
const BYTES_SHARE = { interactive: 0.75, bulk: 0.25 }

/** Starts to consume a queue. */
export function createConsumer(options: ConsumerOptions): Consumer {
  const { keys, redis, resultBounds, claimBytes, failedBytes, concurrency, bytesInHand } = options
  const complete = createComplete(redis, keys, resultBounds, claimBytes)
  const recordFailure = createRecordFailure(redis, keys, failedBytes, options)
  const othersDone = (job: LockedJob) => Promise.all(lanes.map((lane) => lane.othersDone(job)))
  const pauses = createPauses()
  const { pause, resume } = pauses
  const exclusiveRun = createExclusiveRun(pause, resume)
  const shared = { ...options, complete, recordFailure, pauses, exclusiveRun, othersDone }
  const lanes: ReturnType<typeof consumeLane>[] = LANES.map((lane) => {
    const most = { jobs: concurrency[lane], bytes: bytesInHand * BYTES_SHARE[lane] }
    return consumeLane(lane, { ...shared, most })
  })

  return {
    pause,
    resume,
    async close(graceMs) {
      const { promise: graceOver, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, graceMs)
      const closed = Promise.all(lanes.map((lane) => lane.close()))
      pauses.release()
      await Promise.race([closed, graceOver])
      clearTimeout(timer)
    },
  }
}
