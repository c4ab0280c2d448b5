// Deals with a store that is away: recognises it, and pauses the consumer until the store commits writes again.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '@sluice/ops'
import type { Consumer } from '@sluice/queue'
import { StoreAwayError } from '@sluice/store'

/** Resolves if the store commits a write of so many bytes, and rejects otherwise. */
export type ProbeStore = (bytes: number) => Promise<void>

/**
 * Decides whether an error means that the store is away. If a command took too long, a probe as large as what failed decides: if the store commits it, the
 * request itself takes too long, which counts as a failed try.
 */
export async function isStoreAway(error: unknown, probeStore: ProbeStore, bytes: number): Promise<boolean> {
  if (!(error instanceof StoreAwayError)) return false
  return !error.timedOut || (await probeFailure(probeStore, bytes)) !== undefined
}

/** Pauses a consumer until the store commits as many bytes again as were put back. */
export type PauseWhileAway = (consumer: Consumer, bytes: number) => void

/** The pauses between two probes, in ms. */
const PROBE_AGAIN_MS = { first: 100, most: 1_000 }
/** A store that is lost again this soon after a probe succeeded fails at something that the probe does not see. In ms. */
const SOON_MS = 10_000
/** Then the next pause is twice as long as the last one, up to this many ms: else jobs would be fetched and put back all the time. */
const MAX_REST_MS = 10_000

/**
 * Makes a function that pauses a consumer until the store is back. Meanwhile jobs wait in the queue, where a worker that reaches the store can fetch
 * them, instead of being fetched and put back again and again.
 */
export function createPauseWhileAway(probeStore: ProbeStore, log: Logger): PauseWhileAway {
  let isPaused = false
  let failedBytes = 0
  let rest = 0
  let recoveredAt = Number.NEGATIVE_INFINITY

  async function resumeWhenBack(consumer: Consumer): Promise<void> {
    rest = performance.now() - recoveredAt > SOON_MS ? 0 : Math.min(rest * 2 || PROBE_AGAIN_MS.first, MAX_REST_MS)
    await consumer.pause()
    await delay(rest)
    await untilCommitted()
    isPaused = false
    recoveredAt = performance.now()
    await consumer.resume()
    log.info('store.recovered')
  }

  async function untilCommitted(): Promise<void> {
    let wait = PROBE_AGAIN_MS.first
    for (let tries = 0; ; tries++) {
      const failure = await probeFailure(probeStore, failedBytes)
      if (failure === undefined) return
      if (tries === 0) log.warn({ reason: failure.message }, 'store.probe_failed')
      await delay(wait)
      wait = Math.min(wait * 2, PROBE_AGAIN_MS.most)
    }
  }

  return (consumer, bytes) => {
    failedBytes = isPaused ? failedBytes + bytes : bytes
    if (isPaused) return
    isPaused = true
    log.warn('store.lost')
    resumeWhenBack(consumer).catch((err) => log.error({ err }, 'consumer.resume_failed'))
  }
}

async function probeFailure(probeStore: ProbeStore, bytes: number): Promise<Error | undefined> {
  try {
    await probeStore(bytes)
    return undefined
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}
