import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '@sluice/ops'
import type { Consumer } from '@sluice/queue'

/**
 * Stops a consumer from taking jobs until the store answers again, so that jobs wait in the queue, where another worker may reach the store,
 * instead of going round and round.
 */
export function createPauseWhileAway(pingStore: () => Promise<void>, log: Logger): (consumer: Consumer) => void {
  let away = false

  async function resumeWhenBack(consumer: Consumer): Promise<void> {
    await consumer.pause()
    for (let wait = 100; !(await answers(pingStore)); wait = Math.min(wait * 2, 1_000)) await delay(wait)
    away = false
    await consumer.resume()
    log.info('store.back')
  }

  return (consumer) => {
    if (away) return
    away = true
    log.warn('store.away')
    resumeWhenBack(consumer).catch((err) => log.error({ err }, 'consumer.not_resumed'))
  }
}

async function answers(pingStore: () => Promise<void>): Promise<boolean> {
  try {
    await pingStore()
    return true
  } catch {
    return false
  }
}
