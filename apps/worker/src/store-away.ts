// Decides whether a failure means that the store is away, and pauses the consumer until the store commits writes again.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '@sluice/process'
import { type Away, asError, type Consumer } from '@sluice/queue'
import { StoreAwayError } from '@sluice/store'
import type { WorkerMetrics } from './metrics.ts'

/** Resolves if the store commits a write of `bytes` bytes, and rejects otherwise. */
export type ProbeStore = (bytes: number) => Promise<void>

/** The store is away. `since`: when the write that failed began, on the monotonic clock. */
export type LostStore = Away & { reason: string; since: number }

/** The requests of a failed write. Nearly all of their bytes are characters of text. */
type Written = readonly { characters: number }[]

/** Returns whether the store is away: the error is certain, or a probe as large as the failed write fails. */
export async function isStoreAway(error: unknown, probeStore: ProbeStore, failed: Written): Promise<boolean> {
  if (!(error instanceof StoreAwayError)) return false
  return error.isCertain || (await probeFailure(probeStore, charactersOf(failed))) !== undefined
}

function charactersOf(requests: Written): number {
  return requests.reduce((sum, { characters }) => sum + characters, 0)
}

/** The pauses between two probes. */
const PROBE_AGAIN_MS = { first: 100, most: 1_000 }
/**
 * If the store is lost within SOON_MS after a successful probe, the probe does not test what fails. Then the consumer
 * rests before the next probe, so that jobs are not put back again and again. Each rest lasts twice as long as the one
 * before, at most MAX_REST_MS.
 */
const SOON_MS = 10_000
const MAX_REST_MS = 10_000

/** Makes `putBack`, which pauses the consumer until the store commits a probe of as many bytes as were put back. */
export function createPutBack(probeStore: ProbeStore, metrics: Pick<WorkerMetrics, 'putBack'>, log: Logger) {
  /** The loss of the store, unless it is back. */
  let lost: LostStore | undefined
  let failedBytes = 0
  let rest = 0
  let recoveredAt = Number.NEGATIVE_INFINITY

  async function pauseUntilBack(consumer: Consumer): Promise<void> {
    rest = performance.now() - recoveredAt > SOON_MS ? 0 : Math.min(rest * 2 || PROBE_AGAIN_MS.first, MAX_REST_MS)
    await consumer.pause()
    await delay(rest)
    for (let wait = PROBE_AGAIN_MS.first, tries = 0; ; wait = Math.min(wait * 2, PROBE_AGAIN_MS.most), tries++) {
      const failure = await probeFailure(probeStore, failedBytes)
      if (failure === undefined) break
      if (tries === 0) log.warn({ reason: failure.message }, 'store.probe_failed')
      await delay(wait)
    }
    lost = undefined
    recoveredAt = performance.now()
    await consumer.resume()
    log.info('store.recovered')
  }

  return {
    /** Returns for how many ms the store has committed no write, and why. Undefined while the store is not lost. */
    away: () => lost && { ms: performance.now() - lost.since, reason: lost.reason },
    putBack(consumer: Consumer, failed: Written, found: LostStore, description: object): Away {
      failedBytes = charactersOf(failed) + (lost === undefined ? 0 : failedBytes)
      if (lost === undefined) {
        lost = found
        log.warn({ reason: found.reason }, 'store.lost')
        pauseUntilBack(consumer).catch((err) => log.error({ err }, 'consumer.resume_failed'))
      }
      metrics.putBack.inc()
      log.warn(description, 'job.put_back')
      return { away: true }
    },
  }
}

/** A batch that runs for this time has the store probed: commands give up on a store that hangs only after ten seconds. */
const HANGS_MS = 3_000

/**
 * Makes the function that returns for how long the store has hung, and why, before a command finds it. A slow store
 * answers the probe, so it does not hang.
 *
 * @param runningMs returns for how long the oldest batch has been running.
 */
export function createFindHang(probeStore: ProbeStore, runningMs: () => number) {
  let failure: Error | undefined
  let isProbing = false
  async function probe(): Promise<void> {
    isProbing = true
    failure = await probeFailure(probeStore, 0)
    isProbing = false
  }
  return (): { ms: number; reason: string } | undefined => {
    const ms = runningMs()
    if (ms < HANGS_MS) failure = undefined
    else if (!isProbing) void probe()
    return failure && { ms, reason: failure.message }
  }
}

function probeFailure(probeStore: ProbeStore, bytes: number): Promise<Error | undefined> {
  return probeStore(bytes).then(() => undefined, asError)
}
