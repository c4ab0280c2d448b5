import { setTimeout as delay } from 'node:timers/promises'
import { Job, type MinimalJob, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { asError } from './as-error.ts'
import { FAILED_KEPT_S, type IngestJob, type Lane } from './ingest-job.ts'
import { progressOf, triesMade } from './job-progress.ts'
import type { Turns } from './lone-turn.ts'
import type { QueueKeys } from './queue-keys.ts'
import { createSleeper } from './sleeper.ts'
import { createTakeJobs, digestOf, type HeldJob } from './take-jobs.ts'
import { type JobHandlers, workOn } from './work-on-job.ts'

export interface LaneOptions extends JobHandlers {
  keys: QueueKeys
  redis: Redis
  turns: Turns
  /** How many jobs are held at a time. */
  inHand: number
  /** Resolves when the time has come to look for jobs; false where it has passed again. */
  mayTake: () => Promise<boolean>
}

/** A killed worker's jobs go to others within `LOCK_MS + STALLED_CHECK_MS`. */
const LOCK_MS = 5_000
const STALLED_CHECK_MS = 2_000

/** So many jobs at most are taken for a worker that sleeps: Redis can't tell one that is paused or cut off, whose jobs wait until their locks run out. */
const TAKEN_ASLEEP = 4
/** How long it rests where Redis refuses, in ms. */
const REST_MS = 500

/**
 * Takes the jobs of one lane and works on them. BullMQ's own worker takes one job after the other; this one takes what waits in one step, whenever there is
 * room. What is rare (delays, failures, stalled jobs) is left to BullMQ.
 */
export function consumeLane(
  lane: Lane,
  { keys, redis, turns, inHand, mayTake, ...handlers }: LaneOptions,
): { close(): Promise<void> } {
  const worker = new Worker<IngestJob>(keys.queues[lane], null, {
    connection: redis,
    prefix: keys.prefix,
    autorun: false,
    lockDuration: LOCK_MS,
    stalledInterval: STALLED_CHECK_MS,
    // Whether a job has crashed its workers too often is told by `triesMade`: BullMQ can't tell it from those that were held beside it.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    settings: { backoffStrategy: delayBeforeNextTry },
    removeOnComplete: { count: 0 },
    removeOnFail: { age: FAILED_KEPT_S },
    skipVersionCheck: true,
  })
  worker.on('error', handlers.onError)
  const sleeper = createSleeper(redis, `${keys.jobs[lane]}marker`, handlers.onError)
  const takeJobs = createTakeJobs(redis, keys, LOCK_MS)
  const takeWhenWoken = createTakeJobs(sleeper.redis, keys, LOCK_MS)
  const held = new Set<HeldJob>()
  let freed = Promise.withResolvers<void>()
  let closing = false

  async function work(job: HeldJob): Promise<void> {
    held.add(job)
    try {
      await workOn(job, () => Job.fromId<IngestJob>(worker, job.id), turns, handlers)
    } catch (error) {
      handlers.onError(asError(error))
    }
    held.delete(job)
    freed.resolve()
    freed = Promise.withResolvers()
  }

  let takes = 0
  /** @param wakeAt sleeps first, until somebody adds a job or until this time, in ms since 1970. */
  async function take(wakeAt: number | undefined): Promise<{ taken: number; nextAt?: number }> {
    const token = `${worker.id}:${takes++}`
    const limit = inHand - held.size
    const { jobs, special, ...others } =
      wakeAt === undefined
        ? await takeJobs(lane, token, limit, Date.now())
        : await sleeper.sleep(wakeAt, () => takeWhenWoken(lane, token, Math.min(limit, TAKEN_ASLEEP)))
    if (special) {
      const job = await worker.getNextJob(token, { block: false })
      if (job !== undefined) jobs.push(asHeld(job, lane, token))
    }
    for (const job of jobs) void work(job)
    return { taken: jobs.length, ...others }
  }

  async function run(): Promise<void> {
    await worker.startStalledCheckTimer()
    // Who took all that there was (a lone job, or none) is woken by the next one, and need not look for it.
    let wakeAt: number | undefined
    while (!closing) {
      try {
        const may = await mayTake()
        while (held.size >= inHand) await freed.promise
        if (!may || closing) continue
        const { taken, nextAt = Number.POSITIVE_INFINITY } = await take(wakeAt)
        wakeAt = taken <= 1 ? nextAt : undefined
      } catch (error) {
        if (!closing) handlers.onError(asError(error))
        await delay(closing ? 0 : REST_MS)
      }
    }
  }

  function renewLocks(): void {
    const jobs = [...held]
    const [ids, tokens] = [jobs.map(({ id }) => id), jobs.map(({ token }) => token)]
    if (jobs.length > 0) worker.extendJobLocks(ids, tokens, LOCK_MS).catch(handlers.onError)
  }
  const renewal = setInterval(renewLocks, LOCK_MS / 2)

  const running = run()
  return {
    async close() {
      closing = true
      await Promise.all([sleeper.wake(), running])
      while (held.size > 0) await freed.promise
      clearInterval(renewal)
      await worker.close()
    },
  }
}

function asHeld(job: Job<IngestJob>, lane: Lane, token: string): HeldJob {
  const { id = '', data, timestamp, attemptsStarted, attemptsMade, stalledCounter } = job
  const digest = digestOf(data, () => JSON.stringify(data.threads))
  const counted = { timestamp, attemptsStarted, attemptsMade, stalledCounter }
  return { id, lane, token, data, ...digest, ...counted, progress: progressOf(job) }
}

/** Half a second, then twice as long each time, give or take a half, so that what failed together does not try again together. In ms. */
function delayBeforeNextTry(_attempts: number, _type?: string, _error?: Error, job?: MinimalJob): number {
  const failed = job instanceof Job ? triesMade(job) : 0
  return 500 * 2 ** failed * (0.5 + Math.random())
}
