// Deals with a store that is away: recognises it, and pauses the consumer until the store is back.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '@sluice/ops'
import type { Consumer } from '@sluice/queue'
import { StoreUnreachableError } from '@sluice/store'

/** Resolves if the store answers, and rejects otherwise. */
export type PingStore = () => Promise<void>

/**
 * Decides whether an error means that the store is away. A store that answers a ping is not: then the request itself takes too long, which counts as
 * a failed try.
 */
export async function isStoreAway(error: unknown, pingStore: PingStore): Promise<boolean> {
  if (!(error instanceof StoreUnreachableError)) return false
  return !error.timedOut || !(await answers(pingStore))
}

/**
 * Makes a function that pauses a consumer until the store answers. Meanwhile jobs wait in the queue, where a worker that reaches the store can fetch
 * them, instead of being fetched and put back again and again.
 */
export function createPauseWhileAway(pingStore: PingStore, log: Logger): (consumer: Consumer) => void {
  let isPaused = false

  async function resumeWhenBack(consumer: Consumer): Promise<void> {
    await consumer.pause()
    for (let wait = 100; !(await answers(pingStore)); wait = Math.min(wait * 2, 1_000)) await delay(wait)
    isPaused = false
    await consumer.resume()
    log.info('store.recovered')
  }

  return (consumer) => {
    if (isPaused) return
    isPaused = true
    log.warn('store.lost')
    resumeWhenBack(consumer).catch((err) => log.error({ err }, 'consumer.resume_failed'))
  }
}

async function answers(pingStore: PingStore): Promise<boolean> {
  try {
    await pingStore()
    return true
  } catch {
    return false
  }
}
