import { Job, type MinimalJob, type Processor, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { FAILED_KEPT_S, type IngestJob, LANES, type Lane } from './ingest-job.ts'
import { triesMade } from './job-progress.ts'
import { createTurns } from './lone-turn.ts'
import type { QueueKeys } from './queue-keys.ts'
import { endFailed, type JobHandlers, workOn } from './work-on-job.ts'

export interface ConsumerOptions extends JobHandlers {
  keys: QueueKeys
  /** A patient connection; each worker opens a blocking one like it. */
  redis: Redis
  /** For each lane, workers in this process, and jobs that each holds at a time: together they should hold fewer than wait. */
  crew: Readonly<Record<Lane, { workers: number; concurrency: number }>>
}

/** Takes jobs from the queue. */
export interface Consumer {
  /** Takes no more jobs until `resume` was called as often as this. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Takes no more jobs and waits for those at hand, at most so long (ms). What is not done by then goes to another worker when its lock runs out. */
  close(graceMs: number): Promise<void>
}

/** A killed worker's jobs go to others within `lockDuration + stalledInterval`, in ms. */
const LOCK_MS = 5_000
const STALLED_CHECK_MS = 2_000

export function createConsumer({ keys, redis, crew, ...handlers }: ConsumerOptions): Consumer {
  const options = {
    connection: redis,
    prefix: keys.prefix,
    lockDuration: LOCK_MS,
    stalledInterval: STALLED_CHECK_MS,
    // Whether a job has crashed its workers too often is told by `triesMade`: BullMQ can't tell it from those that were held beside it.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    runRetryDelay: 500,
    settings: { backoffStrategy: delayBeforeNextTry },
    removeOnComplete: { count: 0 },
    removeOnFail: { age: FAILED_KEPT_S },
    skipVersionCheck: true,
  }
  let holds = 0
  let closing = false
  async function pause(): Promise<void> {
    holds += 1
    if (holds === 1) await all((worker) => worker.pause(true))
  }
  async function resume(): Promise<void> {
    holds -= 1
    if (holds === 0 && !closing) await all((worker) => worker.resume())
  }
  const endings = new Set<Promise<void>>()
  function track(ending: Promise<void>): void {
    endings.add(ending)
    void ending.finally(() => endings.delete(ending))
  }
  const turns = createTurns(pause, resume)
  const running = LANES.flatMap((lane) =>
    Array.from({ length: crew[lane].workers }, () => {
      const work: Processor<IngestJob> = (job, token) => workOn(job, lane, token, turns, handlers)
      const worker = new Worker<IngestJob>(keys.queues[lane], work, { ...options, concurrency: crew[lane].concurrency })
      worker.on('error', handlers.onError)
      worker.on('failed', (job, error) => {
        if (job !== undefined) track(endFailed(job, lane, error, handlers))
      })
      return worker
    }),
  )
  const all = (act: (worker: Worker) => Promise<void>) => Promise.all(running.map(act))
  return {
    pause,
    resume,
    async close(graceMs) {
      closing = true
      const { promise: graceOver, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, graceMs)
      await Promise.race([all((worker) => worker.close()).then(() => Promise.all(endings)), graceOver])
      clearTimeout(timer)
    },
  }
}

/** Half a second, then twice as long each time, give or take a half, so that what failed together does not try again together. In ms. */
function delayBeforeNextTry(_attempts: number, _type?: string, _error?: Error, job?: MinimalJob): number {
  const failed = job instanceof Job ? triesMade(job) : 0
  return 500 * 2 ** failed * (0.5 + Math.random())
}
