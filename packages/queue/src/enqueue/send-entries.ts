// Sends entries to the enqueueing script in groups, each entry with its deadline in Redis's time.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'
import { JOB_OPTIONS } from '../job/job.ts'
import { createLoadCopy } from '../load/load-copy.ts'
import { type Caller, type Load, type QueueBounds, readTotals, type Totals } from '../load/queue-load.ts'
import { QueueUnavailableError, refusalByRedis } from '../load/refusals.ts'
import { type ChooseGroup, createGroupCommit } from '../redis/group-commit.ts'
import { createSilence } from '../redis/redis-connections.ts'
import { asList, loadScript } from '../redis/script.ts'
import { type Claim, claimsOf } from '../replies/claims.ts'

/** A job that is to be added, or a charge, on its way to Redis. */
export interface Entry {
  caller: Caller
  jobId: string
  claim?: Claim
  /** The arguments of the script that follow the deadline. */
  args: readonly (string | number)[]
  /** The size of the job's data, in characters. */
  size: number
  /** When the entry arrived, and when its caller is answered at the latest, on the monotonic clock, in ms. */
  since: number
  answerBy: number
  /** An entry that was dropped is never sent. */
  state: 'waiting' | 'sent' | 'dropped'
}

export type EntrySender = ReturnType<typeof createEntrySender>

/** What became of an entry: see enqueue.lua. `known`: the job was accepted before. */
export type Outcome =
  | { kind: 'accepted' | 'known' | 'charged' | 'late' | 'rate' | 'full' | 'share' | 'reused' }
  | { kind: 'claimed'; jobId: string }

const LATE: Outcome = { kind: 'late' }

const enqueueScript = loadScript(new URL('./enqueue.lua', import.meta.url))

/** Sends entries to Redis. Those that arrive during a round trip share the next one. */
export function createEntrySender(redis: Redis, { base, jobs }: QueueKeys, bounds: QueueBounds) {
  const enqueueEntries = enqueueScript(redis)
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
    const open = entries.filter(({ state }) => state !== 'dropped')
    if (!isAnswering()) throw new QueueUnavailableError()
    const sentAt = performance.now()
    const callers = new Map(open.map(({ caller }) => [nameOf(caller), caller]))
    const { outcomes } = noteReply(readReply(await orLost(run(open, callers, aheadMs))), callers, sentAt)
    let next = 0
    return entries.map((entry) => (entry.state === 'sent' ? (outcomes[next++] ?? LATE) : LATE))
  }, chooseEntries)

  function run(entries: readonly Entry[], callers: ReadonlyMap<string, Caller>, aheadMs: number): Promise<unknown> {
    const { threads, bytes, tenantShare, claimBytes } = bounds
    const claims = entries.some(({ claim }) => claim !== undefined) ? claimsOf(entries, claimBytes) : ''
    const args: (string | number)[] = [Date.now(), JOB_OPTIONS, threads, bytes, copy.mostInteractive(), tenantShare]
    args.push(jobs.interactive, claims, callers.size)
    for (const { tenant, quota } of callers.values())
      args.push(tenant, quota?.keyId ?? '', quota?.quotesPerSecond ?? 1, quota?.burstQuotes ?? 1)
    const places = new Map([...callers.keys()].map((name, at) => [name, at + 1]))
    for (const entry of entries) {
      entry.state = 'sent'
      args.push(places.get(nameOf(entry.caller)) ?? 0, Math.floor((entry.answerBy + aheadMs) * 1000), ...entry.args)
    }
    return enqueueEntries(base, ...args)
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

  function noteReply(reply: EnqueueReply, callers: ReadonlyMap<string, Caller>, sentAt: number): EnqueueReply {
    clock.note(reply.timeUs)
    copy.noteTotals(reply.totals, sentAt)
    let next = 0
    for (const caller of callers.values()) {
      const of = reply.callers[next++]
      if (of !== undefined) copy.noteCaller(caller, of.load, of.level, sentAt)
    }
    return reply
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
    /** Drops an entry that was not sent yet. */
    drop(entry: Entry): void {
      entry.state = 'dropped'
      waiting.delete(entry)
    },
    /** Returns how long the oldest entry has waited to be sent, in ms. */
    waitedMs(now: number): number {
      for (const { since } of waiting) return now - since
      return 0
    },
  }
}

/** The reply of enqueue.lua. */
interface EnqueueReply {
  /** By Redis's clock, in µs since 1970. */
  timeUs: number
  totals: Totals
  /** The load of each caller's tenant, and the level of its bucket, in quotes. */
  callers: { load: Load; level: number }[]
  outcomes: Outcome[]
}

function readReply(reply: unknown): EnqueueReply {
  const [time, totals, callers, outcomes] = asList(reply)
  return {
    timeUs: Number(time),
    totals: readTotals(totals),
    callers: asList(callers).map((of) => {
      const [threads = 0, bytes = 0, interactive = 0, level = 0] = asList(of).map(Number)
      return { load: { threads, bytes, interactive }, level }
    }),
    outcomes: asList(outcomes).map(readOutcome),
  }
}

function readOutcome(outcome: unknown): Outcome {
  if (Array.isArray(outcome)) return { kind: 'claimed', jobId: String(outcome[1]) }
  switch (outcome) {
    case 'accepted':
    case 'known':
    case 'charged':
    case 'late':
    case 'rate':
    case 'full':
    case 'share':
    case 'reused':
      return { kind: outcome }
    default:
      throw new Error(`unknown outcome ${outcome}`)
  }
}

const nameOf = ({ tenant, quota }: Caller) => `${quota?.keyId ?? ''}/${tenant}`

/** Bounds of one script: it blocks Redis for a millisecond or two. */
const ENTRIES_AT_ONCE = 100
const CHARACTERS_AT_ONCE = 2_000_000

const chooseEntries: ChooseGroup<Entry> = (gathered) => {
  const places: number[] = []
  let characters = 0
  for (const [place, { size, state }] of gathered.entries()) {
    characters += state === 'dropped' ? 0 : size
    if (places.length === ENTRIES_AT_ONCE || (places.length > 0 && characters > CHARACTERS_AT_ONCE)) break
    places.push(place)
  }
  return places
}

/** A sample that is older than this is replaced even by a worse one: the two clocks may have drifted apart. */
const SAMPLE_MS = 10_000

/**
 * Measures by how much Redis's time is ahead of the local monotonic clock. A reply arrives after Redis has read its
 * clock, so each sample is a lower bound.
 */
function openRedisClock(redis: Redis) {
  let aheadMs: number | undefined
  let takenAt = 0
  // The next connection may lead to another server.
  redis.on('close', () => {
    aheadMs = undefined
  })

  /** @param redisUs the time in a reply that has just arrived, in µs since 1970. */
  function note(redisUs: number): number {
    const now = performance.now()
    const sample = redisUs / 1000 - now
    if (aheadMs === undefined || sample > aheadMs || now - takenAt > SAMPLE_MS) {
      aheadMs = sample
      takenAt = now
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
