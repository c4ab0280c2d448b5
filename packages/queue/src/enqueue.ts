// Puts accepted threads into the queue, as jobs, and gives them their places in the order of acceptance.
import { randomUUID } from 'node:crypto'
import type { Thread } from '@sluice/contract'
import type { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { QueueKeys } from './bullmq-layout/names.ts'
import { openQueue, QueueUnavailableError } from './connections.ts'
import { type ChooseGroup, createGroupCommit } from './group-commit.ts'
import { type IngestJob, JOB_OPTIONS, type Lane } from './job.ts'
import { loadScript } from './script.ts'

/** A job's payload before it has its stamp. */
export type JobInput = Omit<IngestJob, 'stamp'>

/** Adds jobs to the queue. */
export type Enqueuer = ReturnType<typeof createEnqueuer>

/** Returns a job id that sorts by time (UUIDv7, RFC 9562) and can't be guessed. */
export function newJobId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  // Node draws the randomness of many UUIDs at once, at a tenth of the cost of drawing it for each.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

/**
 * Opens a queue for new jobs.
 *
 * @param redis a connection that fails fast: see `connectFailFast`.
 */
export function createEnqueuer(keys: QueueKeys, redis: Redis) {
  const queues: Readonly<Record<Lane, Queue<IngestJob>>> = {
    interactive: openQueue(keys, 'interactive', redis),
    bulk: openQueue(keys, 'bulk', redis),
  }
  const enqueueJob = createEnqueueJob(redis, keys)
  return {
    queues,
    /**
     * Adds a job and gives its threads their stamps.
     *
     * @param id the job's id, from `newJobId`: a caller can wait for the job before it is added.
     * @throws {QueueUnavailableError}
     */
    async enqueue(id: string, lane: Lane, job: JobInput): Promise<void> {
      if (redis.status !== 'ready') throw new QueueUnavailableError()
      try {
        await inTime(enqueueJob({ id, lane, job }))
      } catch (error) {
        throw new QueueUnavailableError(error)
      }
    },
  }
}

const enqueueScript = loadScript(new URL('./bullmq-layout/enqueue.lua', import.meta.url))

/** Makes a function that adds a job and returns its first stamp. Jobs that arrive during a round trip share the next one. */
export function createEnqueueJob(
  redis: Redis,
  { base, jobs: laneKeys }: QueueKeys,
): (added: { id: string; lane: Lane; job: JobInput }) => Promise<number> {
  const enqueueJobs = enqueueScript(redis)
  const enqueue = createGroupCommit(async (jobs: string[][]) => {
    const stamps = await enqueueJobs(base, Date.now(), JOB_OPTIONS, ...jobs.flat())
    return Array.isArray(stamps) ? stamps.map(Number) : []
  }, chooseJobs)
  return ({ id, lane, job }) => {
    // The script writes the stamp, which comes first. The threads come last: see `digestOf`.
    const { threads, ...others } = job
    const data = JSON.stringify({ stamp: 0, ...others, threads })
    return enqueue([laneKeys[lane], id, jobName(threads), String(threads.length), data])
  }
}

/** People find a job by its name: the threads that it carries. */
export function jobName(threads: readonly Thread[]): string {
  const [first, last] = [threads[0], threads.at(-1)].map(
    (thread) => thread && `${thread.source.service}/${thread.source.externalId}`,
  )
  return threads.length === 1 ? `${first}` : `${first} … ${last} (${threads.length})`
}

/** Bounds of one script: it blocks Redis for a millisecond or two. */
const JOBS_AT_ONCE = 100
const CHARACTERS_AT_ONCE = 2_000_000

const chooseJobs: ChooseGroup<string[]> = (gathered) => {
  const places: number[] = []
  let characters = 0
  for (const [place, args] of gathered.entries()) {
    characters += args.at(-1)?.length ?? 0
    if (places.length === JOBS_AT_ONCE || (places.length > 0 && characters > CHARACTERS_AT_ONCE)) break
    places.push(place)
  }
  return places
}

/** Callers learn within two seconds that Redis hangs. */
const ENQUEUE_MS = 1_800

async function inTime(adding: Promise<unknown>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`Redis did not answer within ${ENQUEUE_MS} ms`)), ENQUEUE_MS)
  try {
    await Promise.race([adding, late])
  } finally {
    clearTimeout(timer)
  }
}
