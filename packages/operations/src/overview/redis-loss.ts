// Notices that Redis lost its data, or went back to an earlier state. Redis and MongoDB have the
// same mark, renewed about every second. After a loss, their marks differ.
import { setTimeout as delay } from 'node:timers/promises'
import {
  LOSS_SHOWN_MS,
  type Loss,
  MARK_ANSWER_MS,
  type MarkNote,
  type Marks,
  readMarks,
} from '@sluice/boot/marks'
import { asError, LANES, type QueueKeys } from '@sluice/queue'
import type { Redis } from 'ioredis'
import type { Db } from 'mongodb'
import { createOperations } from '../failed/operations.ts'
import { createReadState } from './overview.ts'

/** A loss of what was written within twice this time may stay unnoticed. */
const CHECK_EVERY_MS = 1_000
/** If there are several APIs, the first one of them renews the mark. */
const RENEW_AFTER_MS = 900
/**
 * If a process starts and its Redis lacks the mark, it waits for this time: an API that uses
 * another Redis would renew the mark within it.
 */
const OTHER_WITHIN_MS = 2_500
/** Another Redis is reported for this time after it was last noticed. */
const OTHER_MS = 10_000
const OTHER_QUEUE_MS = 3_000

interface WatchOptions {
  onLoss: (loss: Loss) => void
  /** Is called for the first of several failures in succession. */
  onError: (error: Error) => void
}

/**
 * Compares and renews the marks every second, until `close` is called. After a loss, restores the
 * pauses of lanes, and notes the loss for the verdict.
 */
export function watchRedisLoss(
  redis: Redis,
  keys: QueueKeys,
  db: Db,
  { onLoss, onError }: WatchOptions,
) {
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
      // From the next check on, this process's Redis counts as another one.
      if (isRenewed) seen = mark
      if (isRenewed || now - missed.at < OTHER_WITHIN_MS) return
    }
    seen = mark
    if (isOther) await redis.set(`${keys.base}other-redis`, 1, 'PX', OTHER_MS)
    if (mark !== note?.mark || now - mark >= RENEW_AFTER_MS) await renew(marks)
    if (loss) await redis.set(`${keys.base}lost`, JSON.stringify(loss), 'PX', LOSS_SHOWN_MS)
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
    const failed = queued.reduce(
      (sum, { state, threads }) => sum + (state === 'failed' ? threads : 0),
      0,
    )
    const mark = Math.max(now, before + 1, (note?.mark ?? 0) + 1)
    const next: MarkNote = {
      _id,
      mark,
      before,
      threads: load.threads,
      failed,
      oldest: Math.floor(now - Math.max(...ages)),
      paused,
      ...(loss && { redisLoss: loss }),
    }
    // If several APIs read the same note, only the first update takes effect.
    const update = { q: { _id, mark: note?.mark ?? null }, u: next, upsert: note === null }
    const command = { update: 'layout', updates: [update], writeConcern: { w: 'majority' } }
    const { n } = await db.command(command, { signal: AbortSignal.timeout(MARK_ANSWER_MS) })
    if (n !== 1) return
    if (isLost && loss) onLoss(loss)
    await redis.set(`${keys.base}mark`, mark)
    await noteOtherQueue(_id, now)
  }

  /**
   * Notes another queue of this MongoDB. If APIs renew its mark, its workers would not learn of
   * suppressions, and its jobs would keep the words of what is deleted. If it was left with
   * threads, nothing will store them.
   */
  async function noteOtherQueue(own: string, now: number): Promise<void> {
    const isUsed = { mark: { $gt: now - OTHER_MS } }
    const isLeft = [{ threads: { $gt: 0 } }, { failed: { $gt: 0 } }]
    // The newest mark is of a queue that is used, if there is one: that is the worse fault.
    const options = { sort: { mark: -1 }, signal: AbortSignal.timeout(MARK_ANSWER_MS) } as const
    const notes = db.collection<MarkNote>('layout')
    const other = await notes.findOne({ _id: { $ne: own }, $or: [isUsed, ...isLeft] }, options)
    if (!other) return
    const { _id, mark, threads, failed } = other
    const name = _id.replace('queue:', '')
    const used =
      `The queue ${name} feeds the same MongoDB, and suppressions and deletions of this queue do ` +
      'not reach it: correct its QUEUE or MONGODB_URL'
    const left =
      `The queue ${name} had ${threads} waiting and ${failed} failed threads when its last API ` +
      `stopped: start an API and a worker with QUEUE=${name} until it has none, or give them up ` +
      `by db.layout.deleteOne({ _id: "${_id}" })`
    const text = mark > now - OTHER_MS ? used : left
    await redis.set(`${keys.base}other-queue`, text, 'PX', OTHER_QUEUE_MS)
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
    /** When Redis last lost data, in seconds since 1970, or 0 if it lost none for a day. */
    lostAt: () => (known === undefined ? 0 : Date.parse(known.at) / 1_000),
    close: () => closing.abort(),
  }
}
