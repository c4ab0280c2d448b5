// The mark that both Redis and MongoDB have: a time that is renewed about every second. If the two
// differ, Redis has lost data, or another Redis or an earlier MongoDB is in use
// (docs/adr/0023-identity-and-marks.md).
import type { Status } from '@sluice/contract'
import { readRedisTime } from '@sluice/process/redis'
import { OtherStoreError, type QueueKeys } from '@sluice/queue'
import type { Redis } from 'ioredis'
import type { Db } from 'mongodb'

export type Loss = NonNullable<Status['redisLoss']>
export type Marks = Awaited<ReturnType<typeof readMarks>>

/**
 * What a queue had at its last mark, as a document of the collection `layout`. All times are
 * Redis's, in ms since 1970.
 */
export interface MarkNote extends Pick<Status, 'paused' | 'redisLoss'> {
  _id: string
  mark: number
  /**
   * The mark that Redis had before. Redis may have it again, because its append-only file may lack
   * the last second.
   */
  before: number
  threads: number
  failed: number
  /** When the oldest waiting thread was accepted. */
  oldest: number
}

/** MongoDB must answer within this time. */
export const MARK_ANSWER_MS = 5_000

/** A loss is reported for a day. */
export const LOSS_SHOWN_MS = 86_400_000

/** A primary that has just been replaced may answer with an older note, but never by this much. */
const OLD_STORE_MS = 30_000

/**
 * Compares the marks, and changes nothing. `loss`: the present loss, or one of the last day.
 *
 * @param seen a mark that Redis had earlier. If Redis still has this mark, it has lost nothing, and
 * another Redis has renewed the note.
 * @throws {OtherStoreError} if MongoDB is at an earlier moment than Redis.
 */
export async function readMarks(
  redis: Redis,
  { base, queues }: QueueKeys,
  db: Db,
  seen = Number.POSITIVE_INFINITY,
) {
  const _id = `queue:${queues.interactive}`
  const options = {
    readPreference: 'primary',
    signal: AbortSignal.timeout(MARK_ANSWER_MS),
  } as const
  // Read the note first, because a mark rises there first: so the note is ahead of Redis's own mark
  // by at most one renewal.
  const readNote = () => db.collection<MarkNote>('layout').findOne({ _id }, options)
  const note = await readNote()
  const [mark = 0, other] = (await redis.mget(`${base}mark`, `${base}other-redis`)).map(Number)
  // A mark of 0 is void.
  const isBehind = (one: MarkNote | null) =>
    one !== null && one.mark > 0 && mark > one.mark + OLD_STORE_MS
  // Read the note again: if MongoDB was unavailable, both marks may have risen between the reads.
  if (note && isBehind(note) && isBehind(await readNote()))
    throw new OtherStoreError(
      `The database ${db.databaseName} in MONGODB_URL has its state of ${new Date(note.mark).toISOString()}, or is a copy made then, and the ` +
        `queue ${queues.interactive} has fed it until ${new Date(mark).toISOString()}. Correct MONGODB_URL. If it was restored, stop all ` +
        'processes, run `sluice doctor --after-restore`, and post again what was posted since (docs/operate/mongodb.md#one-queue-one-store).',
    )
  const now = Math.floor(await readRedisTime(redis))
  const differs = note !== null && mark < note.mark && mark !== note.before
  const isOther = differs && (mark >= seen || other === 1)
  // A loss that another Redis reported is no loss of this one.
  const noted = isOther ? undefined : note?.redisLoss
  const earlier = noted && now - Date.parse(noted.at) < LOSS_SHOWN_MS ? noted : undefined
  const isLost = differs && !isOther
  return {
    _id,
    note,
    mark,
    now,
    isOther,
    isLost,
    loss: isLost ? lossOf(note, mark, now, earlier) : earlier,
  }
}

function lossOf(
  { oldest, threads, failed }: MarkNote,
  mark: number,
  now: number,
  earlier?: Loss,
): Loss {
  const iso = (ms: number) => new Date(ms).toISOString()
  const since = [iso(mark || oldest), ...(earlier ? [earlier.since] : [])].sort()[0] ?? iso(now)
  const lost = {
    threads: threads + (earlier?.threads ?? 0),
    failed: failed + (earlier?.failed ?? 0),
  }
  return { at: iso(now), since, ...lost, ...(mark > 0 && { backTo: iso(mark) }) }
}
