// Notices that Redis lost its data, or went back to an earlier state: Redis and MongoDB have the same mark, a time that
// rises every few seconds (docs/adr/0023-identity-and-marks.md).
import { setTimeout as delay } from 'node:timers/promises'
import type { Overview } from '@sluice/contract'
import { readRedisTime } from '@sluice/process/redis'
import { asError, LANES, OtherStoreError, type QueueKeys } from '@sluice/queue'
import type { Redis } from 'ioredis'
import type { Db } from 'mongodb'
import { createOperations } from '../failed/operations.ts'
import { createReadState } from './overview.ts'

type Loss = NonNullable<Overview['redisLoss']>
type Marks = Awaited<ReturnType<typeof readMarks>>

/** What a queue had at its last mark: a document of the collection `layout`. All times are Redis's, in ms since 1970. */
interface Note extends Pick<Overview, 'paused' | 'redisLoss'> {
  _id: string
  mark: number
  /** The mark that Redis had before. It may have it again: its append-only file may lack the last second. */
  before: number
  threads: number
  failed: number
  /** When the oldest waiting thread was accepted. */
  oldest: number
}

/** What Redis may lose unnoticed is at most twice as old. */
const CHECK_EVERY_MS = 1_000
/** Of several APIs, the first one renews the mark. */
const RENEW_AFTER_MS = 900
const ANSWER_MS = 5_000
/** A loss is told for a day. */
const TOLD_MS = 86_400_000

/** Far more than the answer of a primary that was replaced meanwhile may be behind. */
const OLD_STORE_MS = 30_000
/** A process that starts with a Redis that lacks the mark waits for this time: an API of another Redis would renew it. */
const OTHER_WITHIN_MS = 2_500
/** After another Redis is gone, it is told for this time. */
const OTHER_MS = 10_000

/**
 * Compares the marks. `loss`: the present one, or one of the last day. Changes nothing.
 *
 * @param seen a mark that Redis had. If it still has it, it lost nothing: another Redis renews the note, too.
 * @throws {OtherStoreError} if MongoDB is at an earlier moment than Redis.
 */
export async function readMarks(redis: Redis, { base, queues }: QueueKeys, db: Db, seen = Number.POSITIVE_INFINITY) {
  const _id = `queue:${queues.interactive}`
  const options = { readPreference: 'primary', signal: AbortSignal.timeout(ANSWER_MS) } as const
  // First, because a mark rises there first: so it is never ahead of Redis's own by more than one.
  const note = await db.collection<Note>('layout').findOne({ _id }, options)
  const [mark = 0, other] = (await redis.mget(`${base}mark`, `${base}other-redis`)).map(Number)
  // A mark of 0 is void.
  if (note && note.mark > 0 && mark > note.mark + OLD_STORE_MS)
    throw new OtherStoreError(
      `The database ${db.databaseName} in MONGODB_URL has its state of ${new Date(note.mark).toISOString()}, or is a copy made then, and the ` +
        `queue ${queues.interactive} has fed it until ${new Date(mark).toISOString()}. Correct MONGODB_URL. If it was restored, stop all ` +
        'processes, run `sluice doctor --after-restore`, and post again what was posted since (docs/operate/mongodb.md#one-queue-one-store).',
    )
  const now = Math.floor(await readRedisTime(redis))
  const differs = note !== null && mark < note.mark && mark !== note.before
  const isOther = differs && (mark >= seen || other === 1)
  // What the other one told was no loss of this one.
  const told = isOther ? undefined : note?.redisLoss
  const earlier = told && now - Date.parse(told.at) < TOLD_MS ? told : undefined
  const isLost = differs && !isOther
  return { _id, note, mark, now, isOther, isLost, loss: isLost ? lossOf(note, mark, now, earlier) : earlier }
}

function lossOf({ oldest, threads, failed }: Note, mark: number, now: number, earlier?: Loss): Loss {
  const iso = (ms: number) => new Date(ms).toISOString()
  const since = [iso(mark || oldest), ...(earlier ? [earlier.since] : [])].sort()[0] ?? iso(now)
  const lost = { threads: threads + (earlier?.threads ?? 0), failed: failed + (earlier?.failed ?? 0) }
  return { at: iso(now), since, ...lost, ...(mark > 0 && { backTo: iso(mark) }) }
}

interface WatchOptions {
  onLoss: (loss: Loss) => void
  /** Is called for the first of several failures in succession. */
  onError: (error: Error) => void
}

/**
 * Compares and renews the marks, now and every few seconds, until `close` is called. After a loss, pauses the lanes that
 * were paused, and notes the loss for the verdict.
 */
export function watchRedisLoss(redis: Redis, keys: QueueKeys, db: Db, { onLoss, onError }: WatchOptions) {
  const readState = createReadState(redis, keys)
  const { operateLane } = createOperations(redis, keys)
  const closing = new AbortController()
  let known: Loss | undefined
  let seen = Number.POSITIVE_INFINITY
  let missed: { mark: number; at: number } | undefined

  async function check(): Promise<void> {
    const marks = await readMarks(redis, keys, db, seen)
    const { mark, note, now, isOther, isLost, loss } = marks
    if (note && isLost && seen === Number.POSITIVE_INFINITY) {
      missed ??= { mark: note.mark, at: now }
      const isRenewed = note.mark !== missed.mark
      // From the next check on, this one counts as another Redis.
      if (isRenewed) seen = mark
      if (isRenewed || now - missed.at < OTHER_WITHIN_MS) return
    }
    seen = mark
    if (isOther) await redis.set(`${keys.base}other-redis`, 1, 'PX', OTHER_MS)
    if (mark !== note?.mark || now - mark >= RENEW_AFTER_MS) await renew(marks)
    if (loss) await redis.set(`${keys.base}lost`, JSON.stringify(loss), 'PX', TOLD_MS)
    else await redis.del(`${keys.base}lost`)
    known = loss
  }

  async function renew({ _id, note, mark: before, now, isLost, loss }: Marks): Promise<void> {
    for (const lane of LANES) {
      const pause = isLost ? note?.paused[lane] : undefined
      if (pause) await operateLane('pause', lane, pause.by ?? 'a tool of BullMQ', pause)
    }
    const { queued, paused, load } = await readState()
    const ages = queued.map(({ state, oldestMs }) => (state === 'failed' ? 0 : oldestMs))
    const failed = queued.reduce((sum, { state, threads }) => sum + (state === 'failed' ? threads : 0), 0)
    const mark = Math.max(now, before + 1, (note?.mark ?? 0) + 1)
    const counts = { threads: load.threads, failed, oldest: Math.floor(now - Math.max(...ages)) }
    const next: Note = { _id, mark, before, ...counts, paused, ...(loss && { redisLoss: loss }) }
    // Takes effect once, of several APIs that met the same note.
    const update = { q: { _id, mark: note?.mark ?? null }, u: next, upsert: note === null }
    const command = { update: 'layout', updates: [update], writeConcern: { w: 'majority' } }
    const { n } = await db.command(command, { signal: AbortSignal.timeout(ANSWER_MS) })
    if (n !== 1) return
    if (isLost && loss) onLoss(loss)
    await redis.set(`${keys.base}mark`, mark)
  }

  async function keepChecking(): Promise<void> {
    let isFailing = false
    while (!closing.signal.aborted) {
      // While Redis is unavailable, its connection's own listener logs that.
      const checking = redis.status === 'ready' ? check() : Promise.resolve()
      const failure = await checking.then(() => undefined, asError)
      if (failure && !isFailing && !closing.signal.aborted) onError(failure)
      isFailing = failure !== undefined
      await delay(CHECK_EVERY_MS, undefined, { signal: closing.signal }).catch(() => {})
    }
  }

  void keepChecking()
  return {
    /** When Redis last lost data, in seconds since 1970: 0 if it did not within a day. */
    lostAt: () => (known === undefined ? 0 : Date.parse(known.at) / 1_000),
    close: () => closing.abort(),
  }
}
