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
  /** The most bytes of Redis for idempotency keys. Beyond it, the tenant with the most loses its oldest keys first. */
  claimBytes: number
  /** The most bytes of Redis for failed jobs. Beyond it, the oldest are evicted first. */
  failedBytes: number
  /** How many jobs of each lane this process locks at a time. */
  concurrency: Readonly<Record<Lane, number>>
  /** The most bytes of jobs that this process locks. A job beyond its lane's share is locked alone. */
  bytesInHand: number
  /** Resolves when the worker can use jobs of this lane. Until then, any worker can fetch them. */
  ready: (lane: Lane) => Promise<void>
}

/** Fetches jobs until it is closed. */
export interface Consumer {
  /** Stops fetching until `resume` was called once for each `pause`. A blocked connection may still get a few jobs. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Stops fetching, and waits `graceMs` at most for the locked jobs. Other workers get the rest. */
  close(graceMs: number): Promise<void>
}

/** Each lane's share of the bytes in hand, because one bound would make the lanes wait for each other. */
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
