// The client: everything that an importer can ask of Sluice.
import { anySignal } from './abort.ts'
import type { LimitName, QuoteAnswer, Service, SourceAnswer, ThreadRequest } from './contract.ts'
import { SluiceProblem } from './errors.ts'
import { itemOf, postItems } from './post-batch.ts'
import type { ItemResult } from './read-results.ts'
import { type RetryOptions, startRetries, withRetries } from './retries.ts'
import { createSourceLocks } from './source-locks.ts'
import { createTransport, readJson, type TransportOptions } from './transport.ts'

export interface ClientOptions extends TransportOptions {
  /** Tries after the first one, as long as none makes progress. 8 if it is left out; 0 never sends anything again. */
  maxRetries?: number
  /** How long a request is sent again without progress, in ms. Five minutes if it is left out. */
  maxRetryMs?: number
  /** Ends everything that this client does. */
  signal?: AbortSignal
}

/** The names of a source, as its thread gave them. */
export interface SourceName {
  service: Service
  externalId: string
}

/** A stored source, and a page of its quotes in their order. */
export interface StoredThread {
  source: Omit<SourceAnswer, 'outcome'>
  quotes: (Omit<QuoteAnswer, 'outcome'> & { position?: string })[]
  /** `after` of the next page. Absent on the last one. */
  next?: string
}

export interface PageOptions {
  /** Quotes on this page. */
  limit?: number
  /** `next` of the page before. */
  after?: string
  signal?: AbortSignal
}

/** The bounds of the service in force, as plain numbers: bytes, quotes, characters, threads, seconds. */
export type ServiceLimits = Record<LimitName | 'importBytes' | 'importItems' | 'waitSeconds', number>

/** Every function rejects with SluiceProblem, SluiceUnreachable, or the reason of an aborted signal. */
export interface Client {
  /**
   * Posts a bounded chunk with `POST /sources:batch`, and returns what became of each thread, in their order. Threads without a final result are posted again;
   * that is safe, because this client never has two requests for one source in flight. The chunk must fit `importBytes`.
   */
  postBatch(threads: readonly ThreadRequest[], options?: RetryOptions): Promise<ItemResult[]>
  /** Returns a stored source with a page of its quotes. Undefined if the key's tenant has no such source. */
  getSource(source: string | SourceName, options?: PageOptions): Promise<StoredThread | undefined>
  /** Returns the limits in force. */
  limits(options?: { signal?: AbortSignal }): Promise<ServiceLimits>
}

/** @throws {TypeError} if the URL or the key can't be used. */
export function createClient({
  maxRetries = 8,
  maxRetryMs = 300_000,
  signal: ofClient,
  ...options
}: ClientOptions): Client {
  const send = createTransport(options)
  const lockSources = createSourceLocks()
  const retryBounds = { maxRetries, maxRetryMs }

  async function get(path: string, ofCall: AbortSignal | undefined): Promise<unknown> {
    const signal = anySignal(ofClient, ofCall)
    const retries = startRetries(retryBounds, { signal })
    return withRetries(retries, async () => readJson(await send({ path, signal }), signal))
  }

  // The contract's schemas describe these answers.
  return {
    postBatch: (threads, { signal, onRetry } = {}) =>
      postItems({ send, lockSources, retryBounds }, threads.map(itemOf), {
        signal: anySignal(ofClient, signal),
        onRetry,
      }),

    getSource: async (source, { signal, ...page } = {}) => {
      try {
        return (await get(pathOfSource(source, page), signal)) as StoredThread
      } catch (error) {
        if (error instanceof SluiceProblem && error.status === 404 && isOfSource(error)) return undefined
        throw error
      }
    },

    limits: async ({ signal } = {}) => {
      const { limits, waitSeconds } = (await get('limits', signal)) as LimitsAnswer
      const values = Object.entries({ ...limits, waitSeconds }).map(([name, { value }]) => [name, value])
      return Object.fromEntries(values) as ServiceLimits
    },
  }
}

/** Another 404 means that the URL is wrong, or the service too old to have this path. */
function isOfSource({ code }: SluiceProblem): boolean {
  return code !== undefined && code !== 'route_unknown'
}

type LimitsAnswer = { limits: Record<string, { value: number }>; waitSeconds: { value: number } }

function pathOfSource(source: string | SourceName, { limit, after }: PageOptions): string {
  const query = new URLSearchParams({
    ...(typeof source !== 'string' && { service: source.service, externalId: source.externalId }),
    ...(limit !== undefined && { limit: String(limit) }),
    ...(after !== undefined && { after }),
  })
  const path = typeof source === 'string' ? `sources/${encodeURIComponent(source)}` : 'sources'
  return query.size > 0 ? `${path}?${query}` : path
}
