// Adds accepted threads to the queue, as jobs, before a deadline and within bounds.
import type { Thread } from '@sluice/contract'
import type { Redis } from 'ioredis'
import { openQueue, type QueueKeys } from '../bullmq-layout/queue-keys.ts'
import type { IngestJob, Lane } from '../job/job.ts'
import { type Caller, createReadLoad, type QueueBounds, type Quota } from '../load/queue-load.ts'
import { AcceptanceUnknownError, QueueFullError, QueueUnavailableError } from '../load/refusals.ts'
import { claimOf } from '../replies/claims.ts'
import { createEntrySender, ENQUEUE_MS, type Entry, type Outcome } from './send-entries.ts'

/** A job's payload before it has its stamp. */
export type JobInput = Omit<IngestJob, 'stamp'>
export type Enqueuer = ReturnType<typeof createEnqueuer>

/** If an entry has waited for this time, new requests are refused. A new process works off a burst in less. */
const BUSY_MS = 1_000
/** The pause after which a refused request refreshes the copy of the load again. */
const REFRESH_MS = 100

/** Opens a queue for new jobs, on a connection that fails fast: see `connectFailFast`. */
export function createEnqueuer(keys: QueueKeys, redis: Redis, bounds: QueueBounds) {
  const { copy, isAnswering, send, waitedMs } = createEntrySender(redis, keys, bounds)
  let refreshedAt = 0

  /** Charges a key for refused work. Never throws or waits. 0 quotes only ask for the load. */
  function charge(caller: Caller, quotes: number): void {
    const entry = { caller, quotes, lane: 'bulk', jobId: '', name: '', threads: 0, rest: '', ...arrived() } as const
    if (isAnswering()) send(entry).catch(() => {})
  }

  return {
    queues: { interactive: openQueue(keys, 'interactive', redis), bulk: openQueue(keys, 'bulk', redis) },
    load: createReadLoad(redis, keys),
    charge,
    /** Returns whether jobs can be added: Redis is connected and has confirmed what it was sent. */
    isAnswering,
    /**
     * Adds a job, whose threads get their stamps. Returns the job's id. If an earlier job of the same request has
     * claimed the Idempotency-Key, no job is added, and the id is that of the earlier job.
     *
     * @param id the job's id, from `newJobId`: a caller can wait for the job before it is added.
     * @param quota is charged one quote for each quote, and at least one for each thread.
     * @throws {QueueUnavailableError | QueueFullError | RateLimitedError | IdempotencyKeyReusedError} The job was not
     *   accepted and never will be.
     * @throws {AcceptanceUnknownError}
     */
    async enqueue(id: string, lane: Lane, job: JobInput, quota?: Quota): Promise<string> {
      if (!isAnswering()) throw new QueueUnavailableError()
      const entry = jobEntry(id, lane, job, quota)
      const outcome = await confirmed(entry, send)
      if (outcome === 'accepted') return id
      if (typeof outcome === 'object') return outcome.claimedBy
      throw copy.errorOf(outcome, entry.caller)
    },
    /** Throws what enqueueing would most likely throw, apart from errors of idempotency keys. */
    admit(caller: Caller, lane: Lane): void {
      const now = performance.now()
      const refusal = copy.refusalOf(caller, lane, now)
      if (refusal !== undefined) {
        // Refusals go on while nothing is enqueued, so they ask for the load anew.
        if (now - refreshedAt >= REFRESH_MS) {
          refreshedAt = now
          charge(caller, 0)
        }
        throw refusal
      }
      if (!isAnswering() || waitedMs(now) > BUSY_MS) throw new QueueUnavailableError()
    },
    quotaLeft: copy.quotaLeft,
  }
}

const arrived = (): Pick<Entry, 'since' | 'state'> => ({ since: performance.now(), state: 'waiting' })

function jobEntry(jobId: string, lane: Lane, job: JobInput, quota: Quota | undefined): Entry {
  // The script writes the stamp, which comes first. The threads come last: see `digestsOf`.
  const { threads, ...others } = job
  const data = JSON.stringify({ ...others, threads })
  const quotes = threads.reduce((sum, thread) => sum + Math.max(1, thread.quotes.length), 0)
  const caller = quota === undefined ? { tenant: job.tenant } : { tenant: job.tenant, quota }
  const claim = job.claim !== undefined && claimOf(job.claim, lane, threads)
  const about = { caller, quotes, lane, jobId, name: nameJob(threads), threads: threads.length }
  return { ...about, rest: `,${data.slice(1)}`, ...(claim && { claim }), ...arrived() }
}

/** Names a job after its threads: people find it by its name. */
export function nameJob(threads: readonly Thread[]): string {
  const nameOf = (thread?: Thread) => `${thread?.source.service}/${thread?.source.externalId}`
  const first = nameOf(threads[0])
  return threads.length === 1 ? first : `${first} … ${nameOf(threads.at(-1))} (${threads.length})`
}

/**
 * Waits until Redis has confirmed an entry. An entry that was not sent before its deadline is dropped, and the script
 * refuses one that arrives later. Throws `AcceptanceUnknownError` not before that time: until then the entry may be
 * accepted. After the other errors, it never will be.
 */
function confirmed(entry: Entry, send: (entry: Entry) => Promise<Outcome>): Promise<Outcome> {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
  function onLate(): void {
    const isSent = entry.state === 'sent'
    if (!isSent) entry.state = 'dropped'
    reject(isSent ? new AcceptanceUnknownError(entry.jobId) : new QueueUnavailableError())
  }
  // Replies that have arrived by then are read first.
  const timer = setTimeout(() => setImmediate(onLate), ENQUEUE_MS)
  send(entry).then(resolve, (error) => {
    if (error instanceof QueueFullError || error instanceof QueueUnavailableError) reject(error)
    else if (entry.state !== 'sent') reject(new QueueUnavailableError(error))
  })
  return promise.finally(() => clearTimeout(timer))
}
