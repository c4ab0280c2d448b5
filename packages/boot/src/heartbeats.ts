// Sends heartbeats of a process: its state, and what it has counted since its previous heartbeat.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { CountsBy, SeenProcess } from '@sluice/contract'
import { openScript } from '@sluice/process/redis'
import type { QueueKeys } from '@sluice/queue'
import type { Redis } from 'ioredis'
import type { Bins } from './durations.ts'

type OfKind = Pick<SeenProcess, 'kind' | 'version' | 'revision' | 'servers'>

/**
 * People see what was counted in the last seconds: long enough to see rare events, and short enough
 * to see that they have ended.
 */
export const RECENT_SECONDS = 10

/** If MongoDB is unavailable for less than this time, it counts as a flicker. */
export const FLICKER_MS = 2_000

/**
 * What a process reports: totals since its start, and peaks. A heartbeat has the rise of each
 * total.
 */
export interface ProcessReport {
  totals?: {
    readonly [name in CountsBy<'api' | 'worker'> | 'uncompleted' | 'storeFlickers']?: number
  }
  /** Many totals. A heartbeat has only the ten that have risen most. */
  manyTotals?: Readonly<Record<string, number>>
  /**
   * Totals whose rise in the last RECENT_SECONDS people see. If names have a `:`, only the largest
   * of their totals are sent.
   */
  recentTotals?: TotalsByName
  /** Redis keeps the largest of these values in each minute. */
  peaks?: Readonly<Record<string, number>>
  /** The durations since the previous reading. */
  durations?: Bins
  /** Present while MongoDB is unavailable for this process. */
  unavailable?: { ms: number; reason: string } | undefined
  storeMs?: SeenProcess['storeMs']
  slowJobs?: SeenProcess['slowJobs']
  refusedKeys?: SeenProcess['refusedKeys']
  activeJobs?: number
  uncompleted?: SeenProcess['uncompleted']
  refusedCommands?: SeenProcess['refusedCommands']
  refusedByStore?: SeenProcess['refusedByStore']
  queueBounds?: SeenProcess['queueBounds']
  tenantShare?: number
  redisReplicas?: number
}

type TotalsByName = { readonly [name: string]: number | undefined }
type Counts = NonNullable<SeenProcess['counts']>
const MINUTE_MS = 60_000

/**
 * The interval is short, because people look at the status right after a post, and must find the
 * post in it.
 */
const EVERY_MS = 1_000
const LARGEST = 10
const REASON_CHARACTERS = 300
/** A process that stops waits at most this long for a Redis that is unavailable. */
const STOP_MS = 300

/**
 * Sends a heartbeat now and every second. The returned function ends this with a last heartbeat,
 * which removes the process from the list: it stopped in an orderly way, so nobody needs to look
 * for it. While Redis is unavailable, counts accumulate. A heartbeat without a reply is sent again
 * unchanged before the next one: by its number, Redis counts it only once.
 * @param noteTime is called with Redis's time in each reply.
 */
export function startHeartbeats(
  redis: Redis,
  { base }: QueueKeys,
  ofKind: OfKind,
  read: () => Promise<ProcessReport>,
  noteTime: (redisMs: number) => void = () => {},
) {
  const send = openScript(redis, new URL('./heartbeat.lua', import.meta.url))
  const [id, pid, host, began] = [randomUUID(), process.pid, hostname(), performance.now()]
  /** The time by Redis's clock, as soon as that is known. */
  let startedAt = new Date().toISOString()
  let clockAheadMs: number | undefined
  let sent: TotalsByName = {}
  let sending: Promise<void> | undefined
  let beats = 0
  let unconfirmed: object | undefined
  let last = { at: performance.now(), cpu: process.cpuUsage() }
  const [riseInMinute, riseLately] = [createRise(MINUTE_MS), createRise(RECENT_SECONDS * 1_000)]

  function cpuSinceLast(): number {
    const { user, system } = process.cpuUsage(last.cpu)
    const ms = Math.max(performance.now() - last.at, 1)
    last = { at: performance.now(), cpu: process.cpuUsage() }
    return Math.round((user + system) / ms) / 1000
  }

  const risesOf = (totals: TotalsByName) =>
    Object.entries(totals)
      .map(([name, total = 0]) => [name, total - (sent[name] ?? 0)] as const)
      .filter(([, rise]) => rise > 0)

  function countsOf(totals: TotalsByName): Pick<SeenProcess, 'counts' | 'lastMinute'> {
    const counts: Counts = {}
    for (const [name, total = 0] of Object.entries(totals)) {
      const shown = name.replace(/:.*/, '')
      counts[shown] = (counts[shown] ?? 0) + total
    }
    return { counts, lastMinute: Object.fromEntries(riseInMinute(counts)) }
  }

  function recentOf(totals: TotalsByName): SeenProcess['recent'] {
    const largest = riseLately(totals).sort(([, one], [, other]) => other - one)
    const isShown = (name: string, rise: number, index: number) =>
      !name.includes(':') || (rise > 0 && index < LARGEST)
    return Object.fromEntries(largest.filter(([name, rise], index) => isShown(name, rise, index)))
  }

  async function nextBeat(isLast: boolean): Promise<object> {
    const {
      totals = {},
      manyTotals = {},
      recentTotals,
      peaks = {},
      durations,
      unavailable: lost,
      ...more
    } = await read()
    const unavailable = lost && { ...lost, reason: lost.reason.slice(0, REASON_CHARACTERS) }
    const largest = risesOf(manyTotals).sort(([, one], [, other]) => other - one)
    const counts = Object.fromEntries([...risesOf(totals), ...largest.slice(0, LARGEST)])
    const usage = { cpu: cpuSinceLast(), memoryBytes: process.memoryUsage.rss() }
    const about: Omit<SeenProcess, 'id' | 'seenMsAgo'> = {
      ...ofKind,
      host,
      pid,
      startedAt,
      ...usage,
    }
    beats += 1
    const recent = recentTotals && recentOf(recentTotals)
    const state = {
      ...about,
      ...countsOf(totals),
      recent,
      clockAheadMs,
      storeAwayMs: unavailable?.ms,
      ...more,
    }
    const description = isLast ? {} : { about: JSON.stringify({ beat: beats, ...state }) }
    sent = { ...totals, ...manyTotals }
    const reached = more.storeMs !== undefined
    return { id, beat: beats, ...description, counts, peaks, durations, reached, unavailable }
  }

  async function confirm(beat: object): Promise<void> {
    unconfirmed = beat
    const sentAt = performance.now()
    const redisMs = Number(await send(base, beat))
    unconfirmed = undefined
    const now = performance.now()
    // Ignore a late reply, for example after this process was frozen: it does not say what time it
    // is.
    if (now - sentAt > EVERY_MS) return
    noteTime(redisMs)
    if (clockAheadMs === undefined) startedAt = new Date(redisMs - (now - began)).toISOString()
    clockAheadMs = Math.round(Date.now() - redisMs)
  }

  async function beat(isLast: boolean): Promise<void> {
    if (unconfirmed !== undefined) await confirm(unconfirmed)
    await confirm(await nextBeat(isLast))
  }

  function beatUnlessSending(): void {
    // While Redis is unavailable, the connection's own listener logs the error.
    const end = () => {
      sending = undefined
    }
    sending ??= beat(false).then(end, end)
  }

  beatUnlessSending()
  const timer = setInterval(beatUnlessSending, EVERY_MS)
  return async (): Promise<void> => {
    clearInterval(timer)
    const last = Promise.resolve(sending).then(() => beat(true))
    await Promise.race([last.catch(() => {}), delay(STOP_MS, undefined, { ref: false })])
  }
}

/**
 * Makes a function that returns by how much totals have risen in the last `ms`, or since this call
 * if that is shorter.
 */
function createRise(ms: number) {
  /**
   * Oldest first. The rise is counted from the first reading: the newest one that is at least `ms`
   * old, or the very first.
   */
  const readings: { at: number; totals: TotalsByName }[] = [{ at: performance.now(), totals: {} }]
  return (totals: TotalsByName) => {
    const now = performance.now()
    readings.push({ at: now, totals })
    while (now - (readings[1]?.at ?? now) >= ms) readings.shift()
    const before = readings[0]?.totals ?? {}
    return Object.entries(totals).map(
      ([name, total = 0]) => [name, total - (before[name] ?? 0)] as const,
    )
  }
}
