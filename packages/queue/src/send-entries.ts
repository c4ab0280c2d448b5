// Sends entries to the enqueueing script in groups, each entry with its deadline in Redis's time.
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { QueueKeys } from './bullmq-layout/names.ts'
import { CLAIM_MS, type Claim } from './claims.ts'
import { JOB_OPTIONS } from './job.ts'
import { type Caller, createLoadCopy } from './load-copy.ts'
import type { QueueBounds } from './queue-load.ts'
import { QueueFullError, QueueUnavailableError } from './refusals.ts'
import { type ChooseGroup, createGroupCommit, loadScript } from './script.ts'

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
  /** An entry that is given up is never sent. */
  state: 'waiting' | 'sent' | 'given up'
}

export type EntrySender = ReturnType<typeof createEntrySender>

const enqueueScript = loadScript(new URL('./bullmq-layout/enqueue.lua', import.meta.url))

/** Sends entries to Redis. Those that arrive during a round trip share the next one. */
export function createEntrySender(redis: Redis, { base, jobs }: QueueKeys, bounds: QueueBounds) {
  const enqueueEntries = enqueueScript(redis)
  const clock = openRedisClock(redis)
  const copy = createLoadCopy(bounds)
  const answers = watchAnswers(redis, clock)
  const waiting = new Set<Entry>()

  const commit = createGroupCommit(async (entries: Entry[]) => {
    for (const entry of entries) waiting.delete(entry)
    const toRedisTime = await clock.translation()
    const open = entries.filter(({ state }) => state !== 'given up')
    if (!answers.areComing()) throw new QueueUnavailableError()
    const sentAt = performance.now()
    const callers = distinctCallers(open)
    const words = readReply(await answers.orLost(run(open, callers, toRedisTime)), callers, sentAt)
    let place = 0
    return entries.map((entry) => (entry.state === 'sent' ? (words[place++] ?? 'late') : 'late'))
  }, chooseEntries)

  function run(
    entries: readonly Entry[],
    callers: ReadonlyMap<string, Caller>,
    toRedisTime: (at: number) => number,
  ): Promise<unknown> {
    const { threads, bytes, tenantShare } = bounds
    const args: (string | number)[] = [Date.now(), JOB_OPTIONS, threads, bytes, copy.mostInteractive(), tenantShare]
    args.push(jobs.interactive, callers.size, claimsOf(entries, bounds.claimBytes))
    for (const { tenant, quota } of callers.values())
      args.push(tenant, quota?.keyId ?? '', quota?.quotesPerSecond ?? 1, quota?.burstQuotes ?? 1)
    const places = new Map([...callers.keys()].map((name, at) => [name, at + 1]))
    for (const entry of entries) {
      entry.state = 'sent'
      args.push(places.get(nameOf(entry.caller)) ?? 0, toRedisTime(entry.answerBy), ...entry.args)
    }
    return enqueueEntries(base, ...args)
  }

  /** Returns the script's word for each entry. */
  function readReply(reply: unknown, callers: ReadonlyMap<string, Caller>, sentAt: number): string[] {
    const values: unknown[] = Array.isArray(reply) ? reply : []
    const entriesFrom = CALLERS_FROM + callers.size * OF_CALLER
    const [time = 0, threads = 0, bytes = 0, interactive = 0, drained = 0, drainedInteractive = 0, , ...ofCallers] =
      values.slice(0, entriesFrom).map(Number)
    clock.note(time)
    copy.noteTotals({ threads, bytes, interactive, drained, drainedInteractive }, sentAt)
    for (const caller of callers.values()) {
      const [ofThreads = 0, ofBytes = 0, ofInteractive = 0, level = 0] = ofCallers.splice(0, OF_CALLER)
      copy.noteCaller(caller, { threads: ofThreads, bytes: ofBytes, interactive: ofInteractive }, level, sentAt)
    }
    return values.slice(entriesFrom).map(String)
  }

  return {
    copy,
    /** Resolves with the script's word. If it rejects and the entry was sent, the script may have run, unless Redis itself refused it. */
    send(entry: Entry): Promise<string> {
      waiting.add(entry)
      return commit(entry)
    },
    /** Takes back an entry that was not sent yet. */
    giveUp(entry: Entry): void {
      entry.state = 'given up'
      waiting.delete(entry)
    },
    /** Returns whether Redis is connected and has confirmed what it was sent. */
    isAnswering: answers.areComing,
    /** Returns how long the oldest entry has waited to be sent, in ms. */
    waitedMs(now: number): number {
      for (const { since } of waiting) return now - since
      return 0
    },
  }
}

/** The parts of a reply: see enqueue.lua. */
const CALLERS_FROM = 7
const OF_CALLER = 4

const nameOf = ({ tenant, quota }: Caller) => `${quota?.keyId ?? ''}/${tenant}`

/** The claims of entries and their bounds, as JSON. Few requests have a claim. */
function claimsOf(entries: readonly Entry[], bytes: number): string {
  if (entries.every(({ claim }) => claim === undefined)) return ''
  const of = Object.fromEntries(entries.map(({ jobId, claim }) => [jobId, claim]))
  return JSON.stringify({ ms: CLAIM_MS, bytes, of })
}

function distinctCallers(entries: readonly Entry[]): Map<string, Caller> {
  return new Map(entries.map(({ caller }) => [nameOf(caller), caller]))
}

/** Bounds of one script: it blocks Redis for a millisecond or two. */
const ENTRIES_AT_ONCE = 100
const CHARACTERS_AT_ONCE = 2_000_000

const chooseEntries: ChooseGroup<Entry> = (gathered) => {
  const places: number[] = []
  let characters = 0
  for (const [place, { size, state }] of gathered.entries()) {
    characters += state === 'given up' ? 0 : size
    if (places.length === ENTRIES_AT_ONCE || (places.length > 0 && characters > CHARACTERS_AT_ONCE)) break
    places.push(place)
  }
  return places
}

/** How often a Redis that left a command unconfirmed is asked whether it answers again, in ms. */
const ASK_EVERY_MS = 250

/** Watches whether Redis answers. Until it answers again, nothing is sent to it: what it does not confirm is worse for a caller than a refusal. */
function watchAnswers(redis: Redis, clock: ReturnType<typeof openRedisClock>) {
  let isSilent = false
  let onClose = () => {}
  // ioredis neither rejects nor sends again what was under way on a connection that broke.
  redis.on('close', () => onClose())

  async function askUntilAnswered(): Promise<void> {
    if (isSilent) return
    isSilent = true
    while (isSilent && redis.status !== 'end') {
      isSilent = await clock.ask().then(
        () => false,
        () => delay(ASK_EVERY_MS, true, { ref: false }),
      )
    }
  }

  return {
    areComing: () => redis.status === 'ready' && !isSilent,
    /** Waits for a command, of which one at a time is under way. @throws {QueueUnavailableError | QueueFullError} if Redis has refused it; else its fate is unknown. */
    async orLost(running: Promise<unknown>): Promise<unknown> {
      const closed = new Promise((_, reject) => {
        onClose = () => reject(new Error('the connection broke'))
      })
      try {
        return await Promise.race([running, closed])
      } catch (error) {
        if (error instanceof Error && error.name === 'ReplyError') throw refusedBy(error)
        void askUntilAnswered()
        throw error
      }
    },
  }
}

/** Memory becomes free as jobs complete. In seconds. */
const OUT_OF_MEMORY_S = 10

/** A reply that is an error: the script has not run. */
function refusedBy(error: Error): Error {
  return error.message.startsWith('OOM')
    ? new QueueFullError('full', OUT_OF_MEMORY_S)
    : new QueueUnavailableError(error)
}

/** After so long a better sample is no longer better: the two clocks may have drifted apart. In ms. */
const SAMPLE_MS = 10_000

/**
 * Measures by how much Redis's time is ahead of the local monotonic clock. A reply arrives after Redis has read its clock, so each sample is a lower bound,
 * and a moment is translated into that moment in Redis's time or into an earlier one.
 */
function openRedisClock(redis: Pick<Redis, 'time' | 'on'>) {
  let offset: number | undefined
  let takenAt = 0
  // The next connection may lead to another server.
  redis.on('close', () => {
    offset = undefined
  })

  /** @param redisUs the time in a reply that has just arrived, in µs since 1970. */
  function note(redisUs: number): number {
    const now = performance.now()
    const sample = redisUs / 1000 - now
    if (offset === undefined || sample > offset || now - takenAt > SAMPLE_MS) {
      offset = sample
      takenAt = now
    }
    return offset
  }

  async function ask(): Promise<number> {
    const [seconds, microseconds] = await redis.time()
    return note(Number(seconds) * 1_000_000 + Number(microseconds))
  }

  return {
    note,
    ask,
    /** Returns a function that gives a moment of the monotonic clock (ms) in Redis's time (µs). Asks Redis if no reply has told its time yet. */
    async translation(): Promise<(at: number) => number> {
      const ms = offset ?? (await ask())
      return (at) => Math.floor((at + ms) * 1000)
    },
  }
}
