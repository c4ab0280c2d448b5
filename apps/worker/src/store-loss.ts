// Decides whether a failure means that the store is unavailable. If so, pauses the consumer until
// the store commits writes again.
import { setTimeout as delay } from 'node:timers/promises'
import { FLICKER_MS } from '@sluice/boot/heartbeats'
import type { Logger } from '@sluice/process'
import { asError, type Consumer, type StoreUnavailable } from '@sluice/queue'
import { CommandFailedError } from '@sluice/store'
import type { WorkerMetrics } from './metrics.ts'

/** Resolves if the store commits a write of `bytes` bytes. Otherwise rejects. */
export type ProbeStore = (bytes: number) => Promise<void>

/** The store is unavailable. `since`: when the failed write began, on the monotonic clock. */
export type LostStore = StoreUnavailable & { reason: string; since: number }

/** The requests of a failed write. Nearly all of their bytes are characters of text. */
type Written = readonly { characters: number }[]

/**
 * Returns whether the store is unavailable: the error is certain, or a probe as large as the failed
 * write fails.
 */
export async function isStoreUnavailable(
  error: unknown,
  probeStore: ProbeStore,
  failed: Written,
): Promise<boolean> {
  if (!(error instanceof CommandFailedError)) return false
  return error.isCertain || (await failureOf(probeStore, charactersOf(failed))) !== undefined
}

function charactersOf(requests: Written): number {
  return requests.reduce((sum, { characters }) => sum + characters, 0)
}

/** The pauses between two probes. */
const PROBE_AGAIN_MS = { first: 100, most: 1_000 }
/**
 * If the store is lost within SOON_MS after a successful probe, the probe does not test what
 * actually fails. Then the consumer rests before the next probe, so that jobs are not returned in a
 * tight loop. Each rest is twice as long as the last one, at most MAX_REST_MS.
 */
const SOON_MS = 10_000
const MAX_REST_MS = 10_000

/**
 * Makes `noteLost`, which pauses the consumer until the store commits a probe as large as the jobs
 * that were returned.
 */
export function createStoreLoss(
  probeStore: ProbeStore,
  metrics: Pick<WorkerMetrics, 'returned' | 'storeFlickers'>,
  log: Logger,
) {
  /** Set while the store is lost. */
  let lost: LostStore | undefined
  let failedBytes = 0
  let rest = 0
  let recoveredAt = Number.NEGATIVE_INFINITY

  async function pauseUntilBack(consumer: Consumer): Promise<void> {
    rest =
      performance.now() - recoveredAt > SOON_MS
        ? 0
        : Math.min(rest * 2 || PROBE_AGAIN_MS.first, MAX_REST_MS)
    await consumer.pause()
    await delay(rest)
    for (let wait = PROBE_AGAIN_MS.first; ; wait = Math.min(wait * 2, PROBE_AGAIN_MS.most)) {
      const reason = (await failureOf(probeStore, failedBytes))?.message
      if (reason === undefined) break
      // A MongoDB that was unavailable may then refuse the user, which needs another repair.
      if (lost && lost.reason !== reason) {
        lost = { ...lost, reason }
        log.warn({ reason }, 'store.probe_failed')
      }
      await delay(wait)
    }
    recoveredAt = performance.now()
    if (lost && recoveredAt - lost.since < FLICKER_MS) metrics.storeFlickers.inc()
    lost = undefined
    await consumer.resume()
    log.info('store.recovered')
  }

  return {
    /**
     * Returns for how many ms the store has not committed a write, and why. Returns undefined
     * unless the store is lost.
     */
    outage: () => lost && { ms: performance.now() - lost.since, reason: lost.reason },
    noteLost(
      consumer: Consumer,
      failed: Written,
      found: LostStore,
      description: object,
    ): StoreUnavailable {
      failedBytes = charactersOf(failed) + (lost === undefined ? 0 : failedBytes)
      if (lost === undefined) {
        lost = found
        log.warn({ reason: found.reason }, 'store.lost')
        pauseUntilBack(consumer).catch((err) => log.error({ err }, 'consumer.resume_failed'))
      }
      metrics.returned.inc()
      log.warn(description, 'job.put_back')
      return { unavailable: true }
    },
  }
}

/** The store is probed this often. */
const PROBE_EVERY_MS = 5_000
/**
 * If a batch has run for this time, the store is probed without waiting for the batch, because the
 * batch's commands give up only after ten seconds.
 */
const HANGS_MS = 2_000
/** Callers that ask within this time share a probe. */
const SHARED_MS = 500

/**
 * Watches the store by probes, whether or not the worker has jobs. The store counts as unavailable
 * if it refuses a probe, or does not commit one within `PROBE_MS`. A slow store is available.
 *
 * @param runningMs returns for how long the oldest batch has been running.
 */
export function createWatchStore(probeStore: ProbeStore, runningMs: () => number) {
  let failure: { since: number; error: Error } | undefined
  let tookMs: number | undefined
  let began = Number.NEGATIVE_INFINITY
  let probing: Promise<void> | undefined
  async function probe(): Promise<void> {
    began = performance.now()
    const error = await failureOf(probeStore, 0)
    tookMs = performance.now() - began
    const since = failure?.since ?? performance.now() - Math.max(tookMs, runningMs())
    failure = error && { since, error }
    probing = undefined
  }
  function ask(everyMs = SHARED_MS): Promise<void> | undefined {
    if (probing === undefined && performance.now() - began >= everyMs) probing = probe()
    return probing
  }
  return {
    /** Probes the store, unless it was just probed. Resolves when the result is known. */
    ask,
    /**
     * Returns for how many ms the store has been unavailable by the last probe, and why. Called
     * every second.
     */
    outage(): { ms: number; reason: string } | undefined {
      void ask(failure || runningMs() >= HANGS_MS ? SHARED_MS : PROBE_EVERY_MS)
      return failure && { ms: performance.now() - failure.since, reason: failure.error.message }
    },
    /** Returns why the last probe failed. */
    failure: () => failure?.error,
    /** Returns how long the last probe took. Returns undefined before the first result. */
    tookMs: () => tookMs,
  }
}

function failureOf(probeStore: ProbeStore, bytes: number): Promise<Error | undefined> {
  return probeStore(bytes).then(() => undefined, asError)
}
