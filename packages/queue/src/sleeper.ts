import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'

/** How long an idle worker sleeps at most, though the marker that should wake it got lost; and after which time more its connection counts as dead. In ms. */
const SLEEP_MS = 5_000
const DEAD_MS = 1_000
/** Who stops does not wait longer than this for a Redis that is away, in ms. */
const WAKE_MS = 500

/** Sleeps on BullMQ's marker, which stands where a job waits. */
export interface Sleeper {
  /** The connection that blocks while it sleeps. */
  redis: Redis
  /**
   * Sleeps until somebody adds a job, until this time (ms since 1970), or for `SLEEP_MS`, and gives what `then` gives. Its command, which has to go by the same
   * connection, is sent at once and done by Redis at the end of the sleep: that spares a lone job a round trip.
   */
  sleep<Result>(until: number, then: () => Promise<Result>): Promise<Result>
  /** Wakes it for good. Resolves when the connection is no longer needed. */
  wake(): Promise<void>
}

/** @param redis a patient connection; the sleeper opens one like it. */
export function createSleeper(redis: Redis, marker: string, onError: (error: Error) => void): Sleeper {
  const sleeper = redis.duplicate()
  let asleep: Promise<unknown> = Promise.resolve()
  let id: Promise<number | undefined> | undefined
  sleeper.on('error', onError)
  sleeper.on('close', () => {
    id = undefined
  })

  async function unblock(): Promise<void> {
    const client = await id
    if (client === undefined) return
    await redis.client('UNBLOCK', client)
    await asleep
  }

  return {
    redis: sleeper,
    async sleep(until, then) {
      const ms = Math.min(Math.max(until - Date.now(), 10), SLEEP_MS)
      // Where Redis does not tell it, stopping may cost the job that comes in that very moment a few seconds.
      id ??= sleeper.client('ID').catch(() => undefined)
      // A connection that died without a word would block for ever; on a new one the commands are sent again. One that is being made anew must not be cut.
      const watchdog = setInterval(() => sleeper.status === 'ready' && sleeper.disconnect(true), ms + DEAD_MS)
      const woken = Promise.all([id, sleeper.bzpopmin(marker, ms / 1000), then()])
      asleep = woken.catch(() => {})
      try {
        const [, , result] = await woken
        return result
      } finally {
        clearInterval(watchdog)
      }
    },
    async wake() {
      // What Redis takes for a sleeper whose connection is cut would be lost to it.
      await Promise.race([unblock().catch(() => {}), delay(WAKE_MS, undefined, { ref: false })])
      sleeper.disconnect()
    },
  }
}
