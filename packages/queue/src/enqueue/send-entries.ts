// Sends entries to the enqueueing script in groups, each entry with its deadline in Redis's time.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'
import { JOB_OPTIONS, type Lane } from '../job/job.ts'
import { createLoadCopy } from '../load/load-copy.ts'
import type { Caller, QueueBounds } from '../load/queue-load.ts'
import { QueueUnavailableError, refusalByRedis } from '../load/refusals.ts'
import { createSilence } from '../redis/redis-connections.ts'
import { asList, type ChooseGroup, createGroupCommit, openScript } from '../redis/script.ts'
import { type Claim, claimsOf } from '../replies/claims.ts'

/** A job that is to be added, or a charge, on its way to Redis. */
export interface Entry {
  caller: Caller
  /** Quotes to charge. */
  quotes: number
  lane: Lane
  /** '' for a charge. */
  jobId: string
  name: string
  threads: number
  /** The job's data after its stamp. */
  rest: string
  claim?: Claim
  /** When the entry arrived, on the monotonic clock, in ms. */
  since: number
  /** An entry that was dropped is never sent. */
  state: 'waiting' | 'sent' | 'dropped'
}

/** Callers learn within two seconds that Redis hangs. */
export const ENQUEUE_MS = 1_800

/** What became of an entry: see enqueue.lua. `claimedBy`: the id of the earlier job of the same request. */
export type Outcome = string | { claimedBy: string }

/** Sends entries to Redis. Those that arrive during a round trip share the next one. */
export function createEntrySender(redis: Redis, { base, jobs }: QueueKeys, bounds: QueueBounds) {
  const enqueueEntries = openScript(redis, new URL('./enqueue.lua', import.meta.url))
  const clock = openRedisClock(redis)
  const silence = createSilence(redis, clock.ask)
  const copy = createLoadCopy(bounds)
  const waiting = new Set<Entry>()
  let onClose = () => {}
  // ioredis neither rejects nor sends again what was under way on a connection that broke.
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

  /** Sends entries, copies the load that the reply contains, and returns the outcomes: see enqueue.lua. */
  async function run(entries: readonly Entry[], aheadMs: number): Promise<Outcome[]> {
    const sentAt = performance.now()
    const callers = [...new Map(entries.map(({ caller }) => [nameOf(caller), caller])).values()]
    const names = callers.map(nameOf)
    const claims = entries.some(({ claim }) => claim !== undefined) ? claimsOf(entries, bounds.claimBytes) : ''
    const { threads: most, bytes: mostBytes, tenantShare } = bounds
    const args: (string | number)[] = [Date.now(), JOB_OPTIONS, most, mostBytes, copy.mostInteractive(), tenantShare]
    args.push(jobs.interactive, claims, callers.length)
    for (const { tenant, quota } of callers)
      args.push(tenant, quota?.keyId ?? '', quota?.quotesPerSecond ?? 1, quota?.burstQuotes ?? 1)
    for (const entry of entries) {
      const { caller, quotes, lane, jobId, name, threads, rest } = entry
      entry.state = 'sent'
      const deadline = Math.floor((entry.since + ENQUEUE_MS + aheadMs) * 1000)
      args.push(names.indexOf(nameOf(caller)) + 1, deadline, quotes, jobs[lane], jobId, name, threads, rest)
    }
    const [timeUs, totals, loads, outcomes] = asList(await orLost(enqueueEntries(base, ...args)))
    clock.note(Number(timeUs))
    const [threads = 0, bytes = 0, interactive = 0, drained = 0, drainedInteractive = 0] = asList(totals).map(Number)
    copy.noteTotals({ threads, bytes, interactive, drained, drainedInteractive }, sentAt)
    for (const [at, caller] of callers.entries()) {
      const [threads = 0, bytes = 0, interactive = 0, level = 0] = asList(asList(loads)[at]).map(Number)
      copy.noteCaller(caller, { threads, bytes, interactive }, level, sentAt)
    }
    return asList(outcomes).map((one) => (Array.isArray(one) ? { claimedBy: String(one[1]) } : String(one)))
  }

  /** Waits for the script. @throws {QueueUnavailableError | QueueFullError} if Redis has refused it. */
  async function orLost(running: Promise<unknown>): Promise<unknown> {
    const { promise: closed, reject } = Promise.withResolvers<never>()
    onClose = () => reject(new Error('the connection broke'))
    try {
      return await Promise.race([running, closed])
    } catch (error) {
      if (error instanceof Error && error.name === 'ReplyError') throw refusalByRedis(error)
      void silence.begin()
      throw error
    }
  }

  return {
    copy,
    /** Returns whether Redis is connected and has confirmed what it was sent. */
    isAnswering,
    /** If it rejects and the entry was sent, the script may have run, unless Redis itself refused it. */
    send(entry: Entry): Promise<Outcome> {
      waiting.add(entry)
      return commit(entry)
    },
    /** Returns how long the oldest entry has waited to be sent, in ms. */
    waitedMs(now: number): number {
      for (const { since } of waiting) return now - since
      return 0
    },
  }
}

const nameOf = ({ tenant, quota }: Caller) => `${quota?.keyId ?? ''}/${tenant}`

/** Bounds of one script: it blocks Redis for a millisecond or two. */
const ENTRIES_AT_ONCE = 100
const CHARACTERS_AT_ONCE = 2_000_000

const chooseEntries: ChooseGroup<Entry> = (gathered) => {
  const chosen: number[] = []
  let characters = 0
  for (const [index, { rest, state }] of gathered.entries()) {
    characters += state === 'dropped' ? 0 : rest.length
    if (chosen.length === ENTRIES_AT_ONCE || (chosen.length > 0 && characters > CHARACTERS_AT_ONCE)) break
    chosen.push(index)
  }
  return chosen
}

/** A sample that is older than this is replaced even by a worse one: the two clocks may have drifted apart. */
const SAMPLE_MS = 10_000

/**
 * Measures by how much Redis's time is ahead of the local monotonic clock. A reply arrives after Redis has read its
 * clock, so each sample is a lower bound.
 */
function openRedisClock(redis: Redis) {
  let aheadMs: number | undefined
  let sampledAt = 0
  // The next connection may lead to another server.
  redis.on('close', () => {
    aheadMs = undefined
  })

  /** @param redisUs the time in a reply that has just arrived, in µs since 1970. */
  function note(redisUs: number): number {
    const now = performance.now()
    const sample = redisUs / 1000 - now
    if (aheadMs === undefined || sample > aheadMs || now - sampledAt > SAMPLE_MS) {
      aheadMs = sample
      sampledAt = now
    }
    return aheadMs
  }

  async function ask(): Promise<number> {
    const [seconds, microseconds] = await redis.time()
    return note(Number(seconds) * 1_000_000 + Number(microseconds))
  }

  /** Asks Redis for its time before the first reply. */
  return { note, ask, aheadMs: async () => aheadMs ?? ask() }
}
