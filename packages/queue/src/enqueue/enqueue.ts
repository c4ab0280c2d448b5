// Adds jobs with accepted threads to the queue, before a deadline and within bounds. Jobs that
// arrive during a round trip are sent together in the next one. Callers can also wait until Redis's
// replicas have a job, so that a failover does not lose it.
import { type ChooseGroup, createGroupCommit } from '@sluice/process'
import { asList, createSilence, openRedisClock, openScript, serverOf } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import { type IngestJob, JOB_OPTIONS, type Lane, nameJob } from '../job/job.ts'
import { openQueue, type QueueKeys } from '../job/lanes.ts'
import { createLoadCopy, type QueueBounds } from '../load/load-copy.ts'
import {
  AcceptanceUnknownError,
  type Caller,
  QueueFullError,
  QueueUnavailableError,
  type Quota,
  refusalByRedis,
} from '../load/refusals.ts'
import { CLAIM_MS, type Claim, makeClaim } from '../replies/results.ts'

/** A job's payload before it has its stamp. */
export type JobInput = Omit<IngestJob, 'stamp'>
export type Enqueuer = ReturnType<typeof createEnqueuer>

/** A job to add, or a charge without a job, on its way to Redis. */
interface Entry {
  caller: Caller
  quotes: number
  lane: Lane
  /** Empty for a charge. */
  id: string
  name: string
  threads: number
  /** The job's data after its stamp. */
  rest: string
  claim?: Claim | undefined
  /** When the entry arrived, on the monotonic clock, in ms. */
  since: number
  /** An entry that was dropped is never sent. */
  state: 'waiting' | 'sent' | 'dropped'
}

/**
 * The deadline of an entry. It is short, so that callers learn within two seconds that Redis hangs.
 */
const ENQUEUE_MS = 1_800
/**
 * If the oldest entry has waited longer than this, new requests are refused. A process that has
 * just started needs less time to work off a burst.
 */
const BUSY_MS = 1_000
/**
 * A refused request refreshes the copy of the load, at most once in this time. Without this,
 * nothing would refresh the copy while all requests are refused.
 */
const REFRESH_MS = 100

/**
 * The outcome of an entry: see enqueue.lua. `claimedBy`: the id of the earlier job with the same
 * Idempotency-Key.
 */
type EntryOutcome = string | { claimedBy: string }

/**
 * Opens a queue for new jobs.
 * @param redis a connection that fails fast: see `connectFailFast`.
 */
export function createEnqueuer(keys: QueueKeys, redis: Redis, bounds: QueueBounds) {
  const enqueueEntries = openScript(redis, new URL('./enqueue.lua', import.meta.url))
  const clock = openRedisClock(redis)
  const silence = createSilence(redis, clock.ask)
  const copy = createLoadCopy(bounds)
  const waiting = new Set<Entry>()
  let refreshedAt = 0
  let onClose = () => {}
  // If the connection breaks, ioredis neither rejects the commands under way nor sends them again.
  redis.on('close', () => onClose())

  const isAnswering = () => redis.status === 'ready' && !silence.lasts

  const commit = createGroupCommit(async (entries: Entry[]) => {
    for (const entry of entries) waiting.delete(entry)
    const aheadMs = await clock.aheadMs()
    if (!isAnswering()) throw new QueueUnavailableError()
    const open = entries.filter(({ state }) => state !== 'dropped')
    const outcomes = await run(open, aheadMs)
    return entries.map((entry) => outcomes[open.indexOf(entry)] ?? 'late')
  }, chooseEntries)

  /**
   * Sends entries, copies the load that the reply contains, and returns the outcomes: see
   * enqueue.lua.
   */
  async function run(entries: readonly Entry[], aheadMs: number): Promise<EntryOutcome[]> {
    const sentAt = performance.now()
    const callers = [...new Map(entries.map(({ caller }) => [callerId(caller), caller])).values()]
    const ids = callers.map(callerId)
    const { queueThreads, queueBytes, tenantShare: share, claimBytes } = bounds
    const input = {
      most: { threads: queueThreads, bytes: queueBytes, interactive: copy.mostInteractive() },
      share,
      interactive: keys.jobs.interactive,
      server: serverOf(redis).id,
      claims: entries.some(({ claim }) => claim !== undefined)
        ? { ms: CLAIM_MS, bytes: claimBytes }
        : undefined,
      callers: callers.map(({ tenant, quota }) => ({
        tenant,
        ...(quota && {
          bucket: quota.keyId,
          perSecond: quota.quotesPerSecond,
          burst: quota.burstQuotes,
        }),
      })),
      entries: entries.map(({ caller, quotes, lane, id, name, threads, claim, since }) => {
        return {
          caller: ids.indexOf(callerId(caller)) + 1,
          deadline: Math.floor((since + ENQUEUE_MS + aheadMs) * 1000),
          lane: keys.jobs[lane],
          quotes,
          id,
          name,
          threads,
          claim,
        }
      }),
    }
    for (const entry of entries) entry.state = 'sent'
    const texts = [input, JOB_OPTIONS, ...entries.map(({ rest }) => rest)]
    const [timeUs, totals, loads, outcomes] = asList(
      await replyOf(enqueueEntries(keys.base, ...texts)),
    )
    clock.note(Number(timeUs) / 1_000)
    const [threads = 0, bytes = 0, interactive = 0, drained = 0, drainedInteractive = 0] =
      asList(totals).map(Number)
    copy.noteTotals({ threads, bytes, interactive, drained, drainedInteractive }, sentAt)
    for (const [at, caller] of callers.entries()) {
      const [threads = 0, bytes = 0, interactive = 0, level = 0] = asList(asList(loads)[at]).map(
        Number,
      )
      copy.noteCaller(caller, { threads, bytes, interactive }, level, sentAt)
    }
    return asList(outcomes).map((one) =>
      Array.isArray(one) ? { claimedBy: String(one[1]) } : String(one),
    )
  }

  /**
   * Waits for the script's reply. @throws {QueueUnavailableError | QueueFullError} if the script
   * wrote nothing.
   */
  async function replyOf(running: Promise<unknown>): Promise<unknown> {
    const { promise: closed, reject } = Promise.withResolvers<never>()
    onClose = () => reject(new Error('the connection broke'))
    try {
      return await Promise.race([running, closed])
    } catch (error) {
      if (error instanceof Error && error.name === 'ReplyError')
        throw refusalByRedis(error) ?? error
      void silence.begin()
      throw error
    }
  }

  /**
   * Sends an entry. If this rejects after the entry was sent, the script may have run, unless the
   * error is a refusal.
   */
  function send(entry: Entry): Promise<EntryOutcome> {
    waiting.add(entry)
    return commit(entry)
  }

  /** Charges a key for a refused request. Never throws or waits. */
  function charge(caller: Caller, quotes: number): void {
    const noJob = { lane: 'bulk', id: '', name: '', threads: 0, rest: '' } as const
    if (isAnswering()) send({ caller, quotes, ...noJob, ...arrived() }).catch(() => {})
  }

  /** Refreshes the copy of the load, which comes with every reply, by a charge of 0 quotes. */
  const refreshCopy = (caller: Caller) => charge(caller, 0)

  return {
    queues: {
      interactive: openQueue(keys, 'interactive', redis),
      bulk: openQueue(keys, 'bulk', redis),
    },
    charge,
    /** Returns whether jobs can be added: Redis is connected, and is not late with a reply. */
    isAnswering,
    /**
     * Adds a job, and returns its id. If an earlier job of the same request has claimed the
     * Idempotency-Key, adds nothing and returns the id of the earlier job.
     *
     * @param id from `newJobId`: a caller can wait for the job before it is added.
     * @param quota is charged one for each quote, and at least one for each thread.
     * @throws {AcceptanceUnknownError} After any other error, the job was not accepted and never
     * will be.
     */
    async enqueue(id: string, lane: Lane, job: JobInput, quota?: Quota): Promise<string> {
      if (!isAnswering()) throw new QueueUnavailableError()
      const entry = jobEntry(id, lane, job, quota)
      const outcome = await confirmed(entry, send)
      if (outcome === 'accepted') return id
      if (typeof outcome === 'object') return outcome.claimedBy
      throw copy.errorOf(outcome, entry.caller)
    },
    /** Throws what enqueueing would most likely throw now. Does not check idempotency keys. */
    admit(caller: Caller, lane: Lane): void {
      const now = performance.now()
      const refusal = copy.refusalOf(caller, lane, now)
      if (refusal !== undefined) {
        if (now - refreshedAt >= REFRESH_MS) {
          refreshedAt = now
          refreshCopy(caller)
        }
        throw refusal
      }
      const [oldest] = waiting
      if (!isAnswering() || (oldest && now - oldest.since > BUSY_MS))
        throw new QueueUnavailableError()
    },
    /**
     * Checks the quota only, because the queue's bounds don't apply to reads.
     * @throws {RateLimitedError} if the key's quota is used up.
     */
    admitRead(caller: Caller): void {
      if (caller.quota && copy.quotaLeft(caller.quota) === 0) throw copy.errorOf('rate', caller)
    },
    quotaLeft: copy.quotaLeft,
    drained: copy.drained,
    mostInteractive: copy.mostInteractive,
  }
}

const arrived = (): Pick<Entry, 'since' | 'state'> => ({
  since: performance.now(),
  state: 'waiting',
})

function jobEntry(id: string, lane: Lane, job: JobInput, quota: Quota | undefined): Entry {
  const { threads } = job
  // The script writes the stamp, which comes first.
  const rest = `,${JSON.stringify(job).slice(1)}`
  const quotes = threads.reduce(
    (sum, thread) => sum + Math.max(1, 'deletes' in thread ? 1 : thread.quotes.length),
    0,
  )
  const caller = quota === undefined ? { tenant: job.tenant } : { tenant: job.tenant, quota }
  const claim = job.claim === undefined ? undefined : makeClaim(job.claim, lane, threads)
  return {
    caller,
    quotes,
    lane,
    id,
    name: nameJob(threads),
    threads: threads.length,
    rest,
    claim,
    ...arrived(),
  }
}

/**
 * Waits until Redis has confirmed an entry, at most until the entry's deadline. If the entry was
 * not sent by then, it is dropped. If it was sent and reaches the script later, the script refuses
 * it. So `AcceptanceUnknownError` is thrown only at the deadline, because until then the entry may
 * still be accepted. After any other error, it never will be.
 */
function confirmed(
  entry: Entry,
  send: (entry: Entry) => Promise<EntryOutcome>,
): Promise<EntryOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<EntryOutcome>()
  let cause: unknown
  function onLate(): void {
    const isSent = entry.state === 'sent'
    if (!isSent) entry.state = 'dropped'
    reject(isSent ? new AcceptanceUnknownError(entry.id, cause) : new QueueUnavailableError())
  }
  // Read replies that have arrived by the deadline first.
  const timer = setTimeout(() => setImmediate(onLate), ENQUEUE_MS)
  send(entry).then(resolve, (error) => {
    cause = error
    if (error instanceof QueueFullError || error instanceof QueueUnavailableError) reject(error)
    else if (entry.state !== 'sent') reject(new QueueUnavailableError(error))
  })
  return promise.finally(() => clearTimeout(timer))
}

const callerId = ({ tenant, quota }: Caller) => `${quota?.keyId ?? ''}/${tenant}`

/** Bounds of one call of the script, which then blocks Redis for a millisecond or two. */
const ENTRIES_AT_ONCE = 100
const CHARACTERS_AT_ONCE = 2_000_000

const chooseEntries: ChooseGroup<Entry> = (gathered) => {
  const chosen: number[] = []
  let characters = 0
  for (const [index, { rest, state }] of gathered.entries()) {
    characters += state === 'dropped' ? 0 : rest.length
    if (chosen.length === ENTRIES_AT_ONCE || (chosen.length > 0 && characters > CHARACTERS_AT_ONCE))
      break
    chosen.push(index)
  }
  return chosen
}

export type Replication = ReturnType<typeof openReplication>

const WAIT_MS = 1_000

/**
 * Lets callers wait until `replicas` replicas of Redis have their jobs. Uses a separate connection,
 * because WAIT blocks.
 */
export function openReplication(
  redis: Redis,
  { base }: QueueKeys,
  replicas: number,
  onError: (error: Error) => void,
) {
  const own = replicas > 0 ? redis.duplicate().on('error', onError) : undefined
  /**
   * Takes the times at which jobs were enqueued. Returns for each whether enough replicas now have
   * its writes, and Redis is still the same server.
   */
  const areReached = createGroupCommit(async (times: number[]) => {
    // WAIT waits only for the writes of its own connection. A replica that has this write also has
    // all earlier writes.
    await own?.set(`${base}replicated`, '')
    const reached = (await own?.wait(replicas, WAIT_MS)) ?? 0
    return times.map((since) => reached >= replicas && serverOf(redis).since < since)
  })
  return {
    /**
     * Resolves when enough replicas have the job.
     *
     * @param since a moment before the job was enqueued, on the monotonic clock, in ms.
     * @throws {AcceptanceUnknownError} if they do not have it within a second, or Redis has become
     * another server.
     */
    async confirm(jobId: string, since: number): Promise<void> {
      if (own && !(await areReached(since).catch(() => false)))
        throw new AcceptanceUnknownError(jobId)
    },
    close: () => own?.disconnect(),
  }
}
