// Lets an idle worker wait for the next job of a lane, on a connection that blocks.
import { setTimeout as delay } from 'node:timers/promises'
import { connectLike } from '@sluice/process/redis'
import type { Redis } from 'ioredis'

/** An idle worker blocks for at most `BLOCK_MS`. After `DEAD_MS` more, its connection counts as dead. */
const BLOCK_MS = 5_000
const DEAD_MS = 1_000
/** A worker that stops waits no longer than this for a Redis that is unavailable. */
const STOP_MS = 500

/** Opens a second connection to the server of `redis`, to block on BullMQ's marker, which is set while jobs wait. */
export function createBlockingWait(redis: Redis, marker: string, onError: (error: Error) => void) {
  // After this time, a connection that died silently is replaced, and the new one sends the commands again.
  const blocking = connectLike(redis, onError, BLOCK_MS + DEAD_MS)
  /** Redis's id of the connection, by which another connection can unblock it. */
  let clientId: Promise<number | undefined> | undefined
  blocking.on('close', () => {
    clientId = undefined
  })
  /** Resolves when the commands of the current wait have their replies. */
  let replied: Promise<unknown> = Promise.resolve()
  /** Makes the current wait throw this error. */
  let endWait = (_error: Error) => {}

  async function unblock(): Promise<void> {
    const client = await clientId
    if (client === undefined) return
    await redis.client('UNBLOCK', client)
    await replied
  }

  return {
    redis: blocking,
    /**
     * Blocks until a job is added, until this time (ms since 1970), or for `BLOCK_MS`, and returns the result of
     * `then`. The command of `then` must use this connection: it is sent at once, which saves a round trip.
     */
    async wait<Result>(until: number, then: () => Promise<Result>): Promise<Result> {
      const ms = Math.min(Math.max(until - Date.now(), 10), BLOCK_MS)
      clientId ??= blocking.client('ID').catch(() => undefined)
      const replies = Promise.all([clientId, blocking.bzpopmin(marker, ms / 1000), then()])
      replied = replies.catch(() => {})
      // If the connection is closed while it reconnects, ioredis never settles its commands, so `stop` ends the wait.
      const stopped = Promise.withResolvers<never>()
      endWait = stopped.reject
      const [, , result] = await Promise.race([replies, stopped.promise])
      return result
    },
    /** Wakes another blocked worker, because this one was woken and fetches nothing. */
    wakeAnother: () => redis.zadd(marker, 0, '0'),
    /**
     * Ends the current wait, and closes the connection. Unblocks it first, by its id: jobs that Redis fetched for a
     * closed connection would wait until their locks expire.
     */
    async stop(): Promise<void> {
      await Promise.race([unblock().catch(() => {}), delay(STOP_MS, undefined, { ref: false })])
      blocking.disconnect()
      endWait(new Error('the wait was stopped'))
    },
  }
}
