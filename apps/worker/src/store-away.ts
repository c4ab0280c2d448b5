// Deals with a store that fails: tries the parts of a failed batch and names what could not be stored, or if the store
// is away, pauses the consumer until it commits writes again.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '@sluice/ops'
import { type Away, asError, type Consumer, type FetchedJob, PartlyStoredError, type Receipt } from '@sluice/queue'
import { isRefused, StoreAwayError, type StoredAnswer, type StoreRequest } from '@sluice/store'
import type { WorkerMetrics } from './metrics.ts'

/** Resolves if the store commits a write of `bytes` bytes, and rejects otherwise. */
export type ProbeStore = (bytes: number) => Promise<void>

/** A request was stored or can't be stored, or the store is away and the request's outcome is unknown. */
export type Ingested = { answer: StoredAnswer } | { error: Error } | (Away & { reason: string })

/** What was to be written. Nearly all of its bytes are characters of text. */
type Written = readonly { characters: number }[]

/**
 * Decides whether an error means that the store is away. After a command that exceeded its time limit, a probe of the
 * same size decides: if the store commits the probe, the request itself is too slow, which counts as a failed try.
 */
export async function isStoreAway(error: unknown, probeStore: ProbeStore, failed: Written): Promise<boolean> {
  if (!(error instanceof StoreAwayError)) return false
  return !error.timedOut || (await probeFailure(probeStore, charactersOf(failed))) !== undefined
}

/**
 * Returns what became of the requests of a batch that failed: it is put back as a whole if the store is away, or else
 * stored in parts by `storeBatch`.
 */
export async function settleFailed<Request extends StoreRequest & Written[number], Tried extends object>(
  batch: readonly Request[],
  error: unknown,
  probeStore: ProbeStore,
  storeBatch: (part: Request[]) => Promise<(Tried | Ingested)[]>,
): Promise<(Tried | Ingested)[]> {
  if (await isStoreAway(error, probeStore, batch)) {
    const { message: reason } = asError(error)
    return batch.map(() => ({ away: true, reason }))
  }
  return batch.length > 1 ? storeInParts(batch, error, storeBatch) : [{ error: asError(error) }]
}

function charactersOf(requests: Written): number {
  return requests.reduce((sum, { characters }) => sum + characters, 0)
}

/**
 * Tries a failed batch in two parts, one after the other: the requests that the store did not refuse and the others, or
 * if the error does not say which are at fault, its halves. Parts of parts lead to these, so a thousand threads do not
 * wait until each was tried alone. Stops when the store is away: the other part would wait for the same time.
 */
async function storeInParts<Request extends StoreRequest, Tried extends object>(
  batch: readonly Request[],
  error: unknown,
  storeBatch: (part: Request[]) => Promise<Tried[]>,
): Promise<Tried[]> {
  const tried = new Map<Request, Tried>()
  let away: Tried | undefined
  for (const part of partsOf(batch, error)) {
    // The batch may have written parts of each request.
    const again = part.map((request) => ({ ...request, redelivered: true }))
    const results = away === undefined ? await storeBatch(again) : []
    away ??= results.find((one) => 'away' in one)
    part.forEach((request, at) => {
      const result = results[at] ?? away
      if (result !== undefined) tried.set(request, result)
    })
  }
  return batch.flatMap((request) => tried.get(request) ?? [])
}

function partsOf<Request extends StoreRequest>(batch: readonly Request[], error: unknown): Request[][] {
  const refused = batch.filter((request) => isRefused(error, request))
  if (refused.length > 0 && refused.length < batch.length) {
    return [batch.filter((request) => !isRefused(error, request)), refused]
  }
  const middle = Math.ceil(batch.length / 2)
  return [batch.slice(0, middle), batch.slice(middle)]
}

/** The error of a job of which some threads could not be stored. It names the first of them. */
export function partlyStored(
  { data: { threads } }: FetchedJob,
  ingested: readonly Ingested[],
  receipts: readonly (Receipt | null)[],
): PartlyStoredError {
  const errors = ingested.map((one) => ('error' in one ? one.error : undefined))
  const failedThreads = threads.flatMap(({ source: { service, externalId } }, place) => {
    const reason = errors[place]?.message
    return reason === undefined ? [] : [{ place, service, externalId, reason }]
  })
  const [message = ''] = failedThreads.map(({ place, service, externalId, reason }) =>
    threads.length > 1 ? `threads[${place}] ${JSON.stringify(`${service}/${externalId}`)}: ${reason}` : reason,
  )
  return new PartlyStoredError(message, failedThreads, receipts, errors.find(Boolean))
}

/** The pauses between two probes. */
const PROBE_AGAIN_MS = { first: 100, most: 1_000 }
/** A store that is lost within this time after a successful probe fails at something that the probe does not test. */
const SOON_MS = 10_000
/** Then each pause is twice the last one, up to this bound: else jobs would be fetched and put back all the time. */
const MAX_REST_MS = 10_000

/**
 * Notes that jobs are put back, and pauses the consumer until the store commits as many bytes as
 * were put back. In the pause, jobs wait in the queue, where a worker that reaches the store can fetch them.
 */
export function createPutBack(probeStore: ProbeStore, metrics: Pick<WorkerMetrics, 'putBack'>, log: Logger) {
  /** When the store was lost, unless it is back. */
  let lostAt: number | undefined
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
    lostAt = undefined
    recoveredAt = performance.now()
    await consumer.resume()
    log.info('store.recovered')
  }

  return {
    /** Returns for how long the store has committed no write. Undefined unless it was lost. */
    awayMs: () => lostAt && performance.now() - lostAt,
    putBack(consumer: Consumer, failed: Written, reason: string, description: object): Away {
      failedBytes = charactersOf(failed) + (lostAt === undefined ? 0 : failedBytes)
      if (lostAt === undefined) {
        lostAt = performance.now()
        log.warn({ reason }, 'store.lost')
        pauseUntilBack(consumer).catch((err) => log.error({ err }, 'consumer.resume_failed'))
      }
      metrics.putBack.inc()
      log.warn(description, 'job.put_back')
      return { away: true }
    },
  }
}

function probeFailure(probeStore: ProbeStore, bytes: number): Promise<Error | undefined> {
  return probeStore(bytes).then(() => undefined, asError)
}
