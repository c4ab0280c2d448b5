// Consumes the queue: both lanes, which pause and close together, within one process.
import { setTimeout as delay } from 'node:timers/promises'
import type { SeenProcess } from '@sluice/contract'
import { createRecordAttempt, type FailedSetOptions } from '../failed/failed-set.ts'
import { LANES, type Lane, type LockedJob } from '../job/job.ts'
import type { ResultBounds } from '../replies/results.ts'
import { consumeLane } from './consume-lane.ts'
import { createPauses, type LaneOptions } from './fail-job.ts'
import { createComplete } from './fetch-and-complete.ts'

export interface ConsumerOptions extends LaneOptions, ResultBounds, FailedSetOptions {
  /** The most jobs of each lane that this process locks at a time. */
  concurrency: Readonly<Record<Lane, number>>
  /** The most bytes of jobs that this process locks. A job larger than its lane's share is the lane's only one. */
  bytesInHand: number
}

export type Consumer = ReturnType<typeof createConsumer>

/** Each lane's share of `bytesInHand`. With one bound for both, a lane would wait for the other lane's jobs. */
const BYTES_SHARE = { interactive: 0.75, bulk: 0.25 }

const SHOWN_NAME = 200

/** Starts to consume a queue. */
export function createConsumer(options: ConsumerOptions) {
  const { keys, redis, concurrency, bytesInHand } = options
  const complete = createComplete(redis, keys, options, options.name)
  const recordAttempt = createRecordAttempt(redis, keys, options)
  const othersDone = (job: LockedJob) => Promise.all(lanes.map((lane) => lane.othersDone(job)))
  const pauses = createPauses()
  const shared = { ...options, complete, recordAttempt, pauses, othersDone }
  const lanes: ReturnType<typeof consumeLane>[] = LANES.map((lane) => {
    const most = { jobs: concurrency[lane], bytes: bytesInHand * BYTES_SHARE[lane] }
    return consumeLane(lane, { ...shared, most })
  })

  return {
    /** Stops fetching until `resume` is called. A blocked connection may still get a few jobs. */
    pause: pauses.pause,
    resume: pauses.resume,
    /** Returns the jobs that this process has had locked for longer than `ms`. */
    lockedFor(ms: number): NonNullable<SeenProcess['slowJobs']> {
      const now = performance.now()
      const slow = lanes.flatMap(({ locked }) => [...locked]).filter(([, since]) => now - since > ms)
      return slow.map(([job, since]) => ({
        id: job.id,
        name: job.name.slice(0, SHOWN_NAME),
        activeMs: Math.round(now - since),
      }))
    },
    /** Stops fetching, and waits at most `graceMs` for the locked jobs. Other workers get the rest later. */
    async close(graceMs: number): Promise<void> {
      const closed = Promise.all(lanes.map((lane) => lane.close()))
      pauses.release()
      await Promise.race([closed, delay(graceMs, undefined, { ref: false })])
    },
  }
}
