import type { Thread } from '@sluice/contract'
import { Job, type MinimalJob, type Processor, UnrecoverableError, WaitingError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { FAILED_KEPT_S, type IngestJob, LANES, type Lane, TRIES } from './ingest-job.ts'
import { allTries, progressOf, triesMade } from './job-progress.ts'
import { createTurns, type Turns } from './lone-turn.ts'
import type { QueueKeys } from './queue-keys.ts'
import type { Receipt } from './receipt.ts'
import type { EndedJob } from './results.ts'

/** A job as a worker gets it. */
export interface TakenJob {
  id: string
  lane: Lane
  data: IngestJob
  /** Which try this is, from 1; crashes of its workers count. */
  attempt: number
  /** Somebody may have worked on it before without finishing. */
  redelivered: boolean
  /** A worker crashed or froze while it had the job, so the job may be why. */
  suspect: boolean
  enqueuedAt: number
}

/** What working on a job came to. `away`: nothing is wrong with the job, it waits until the store is back and loses no try. Throwing means another try. */
export type Worked = { receipts: Receipt[] } | { away: true }

export interface ConsumerOptions {
  keys: QueueKeys
  /** A patient connection; each worker opens a blocking one like it. */
  redis: Redis
  /** For each lane, workers in this process, and jobs that each holds at a time: together they should hold fewer than wait. */
  crew: Readonly<Record<Lane, { workers: number; concurrency: number }>>
  work: (job: TakenJob) => Promise<Worked>
  /** Keeps and replies what the job came to; the job is done only after it. */
  end: (job: EndedJob) => Promise<void>
  onFailed: (job: TakenJob, reason: string, final: boolean) => void
  onError: (error: Error) => void
}

/** Some of a job's threads could not be stored; the others were. */
export class PartlyStoredError extends Error {
  readonly receipts: (Receipt | null)[]

  constructor(reason: string, receipts: (Receipt | null)[]) {
    super(reason)
    this.name = 'PartlyStoredError'
    this.receipts = receipts
  }
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

type Handlers = Pick<ConsumerOptions, 'work' | 'end' | 'onFailed' | 'onError'>

async function workOn(
  job: Job<IngestJob>,
  lane: Lane,
  token: string | undefined,
  turns: Turns,
  handlers: Handlers,
): Promise<void> {
  const taken = describeTaken(job, lane)
  if (taken.attempt > TRIES)
    throw new UnrecoverableError(`gave up after ${TRIES} tries; the last one crashed or froze its worker`)
  const worked = await turns.take(taken.suspect, () =>
    taken.suspect ? countedTry(job, taken, handlers) : tryWork(taken, handlers),
  )
  if (worked === undefined || 'away' in worked) {
    await job.updateProgress({ ...progressOf(job), waitingSince: Date.now() })
    await job.moveToWait(token)
    throw new WaitingError()
  }
  await handlers.end(endedJob(taken, { receipts: worked.receipts }))
}

/** Counts the try as a crash until its end is known. */
async function countedTry(job: Job<IngestJob>, taken: TakenJob, handlers: Handlers): Promise<Worked> {
  const { crashes = 0, ...progress } = progressOf(job)
  await job.updateProgress({ ...progress, crashes: crashes + 1 })
  try {
    return await tryWork(taken, handlers)
  } finally {
    await job.updateProgress({ ...progress, crashes })
  }
}

async function tryWork(taken: TakenJob, { work }: Handlers): Promise<Worked> {
  try {
    return await work(taken)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    // BullMQ counts failed tries and crashes apart.
    if (taken.attempt < TRIES) throw error
    throw Object.assign(new UnrecoverableError(reason), { cause: error })
  }
}

function describeTaken(job: Job<IngestJob>, lane: Lane): TakenJob {
  return {
    id: job.id ?? '',
    lane,
    data: job.data,
    attempt: triesMade(job) + 1,
    redelivered: job.attemptsStarted > 1,
    suspect: job.stalledCounter > 0,
    enqueuedAt: job.timestamp,
  }
}

function endedJob({ id, lane, data, attempt }: TakenJob, ending: EndedJob['ending']): EndedJob {
  return {
    id,
    lane,
    told: data.told,
    attempts: attempt,
    ending,
    ...(data.replyTo !== undefined && { replyTo: data.replyTo }),
    ...(data.batch !== undefined && { batch: { id: data.batch.id, items: itemsOf(data.threads, data.batch.places) } }),
  }
}

function itemsOf(threads: readonly Thread[], places: readonly number[]) {
  return threads.map(({ source }, at) => ({ index: places[at] ?? at, externalId: source.externalId }))
}

/** BullMQ has already counted the failed try. */
async function endFailed(
  job: Job<IngestJob>,
  lane: Lane,
  error: Error,
  { end, onFailed, onError }: Handlers,
): Promise<void> {
  const taken = { ...describeTaken(job, lane), attempt: Math.min(triesMade(job), TRIES) }
  const final = job.finishedOn !== undefined
  onFailed(taken, error.message, final)
  try {
    if (final) await end(endedJob(taken, { receipts: receiptsOf(error, taken), failure: error.message }))
    const ended = final ? { given: taken.attempt, earlier: allTries(job) } : { waitingSince: Date.now() }
    await job.updateProgress({ ...progressOf(job), ...ended })
  } catch (failure) {
    onError(failure instanceof Error ? failure : new Error(String(failure)))
  }
}

/** A job that failed may have stored some of its threads all the same. */
function receiptsOf({ cause }: Error, { data }: TakenJob): (Receipt | null)[] {
  return cause instanceof PartlyStoredError ? cause.receipts : data.threads.map(() => null)
}
