// The client: everything that an importer can ask of Sluice.
import type { CallOptions } from './abort.ts'
import type {
  DeletedItem,
  DeletionAnswer,
  ImportProgress,
  JobAnswer,
  LimitName,
  ProblemCode,
  RefusedItem,
  Service,
  SourceList,
  SourcePage,
  StoredSource,
  ThreadRequest,
} from './contract.ts'
import {
  type DeleteManyOptions,
  type DeleteOptions,
  deleteChunks,
  sendDeletion,
} from './delete-sources.ts'
import { type ItemResult, itemOf, type PostBatchOptions, postItems } from './post-batch.ts'
import { type PostManyOptions, postChunks, type Threads } from './post-many.ts'
import { followJob, type PostOptions, type PostResult, postThread } from './post-thread.ts'
import { SluiceProblem } from './request-errors.ts'
import { type RetryOptions, withRetries } from './retries.ts'
import { createSourceLocks, sourceOf } from './source-locks.ts'
import {
  createTransport,
  type HttpRequest,
  pathOfSource,
  queryOf,
  readJson,
  readUnlessAborted,
  type SourceName,
  type SourceReference,
  type TransportOptions,
} from './transport.ts'

export interface ClientOptions extends TransportOptions {
  /**
   * The most retries of a request, counted from its last progress. Default: 8. With 0, nothing is
   * sent again.
   */
  maxRetries?: number | undefined
  /**
   * No retry begins later than this time after the request's last progress. Default: five minutes.
   */
  maxRetryMs?: number | undefined
}

export interface PageOptions extends CallOptions {
  limit?: number | undefined
  /** The `next` of the previous page. */
  after?: string | undefined
}

export interface ListOptions extends PageOptions {
  /** If set, only sources of this service. */
  service?: Service | undefined
  /** If set, only sources whose first request was accepted at this time or later. */
  since?: Date | undefined
}

export interface ExportOptions extends RetryOptions {
  /** Whose threads. Only with an operator's key, which needs it. */
  tenant?: string | undefined
  service?: Service | undefined
  /** Only threads that were posted at this time or later. */
  since?: Date | undefined
  /** Only quotes of this speaker, and only threads that have one. */
  speaker?: string | undefined
  /** `next` of the page before. */
  after?: string | undefined
}

/** A page of an export: threads as NDJSON, in the form of a post. */
export interface ExportPage {
  ndjson: string
  /** The cursor of the next page. Absent on the last one. */
  next?: string
}

/** The limits of the service, as plain numbers, and the tenant of the key. */
export interface ServiceLimits extends Record<LimitName | 'importItems' | 'waitSeconds', number> {
  /** Absent if the key is not known. */
  tenant?: string
}

/**
 * Every function rejects with SluiceProblem, SluiceUnreachable, or the reason of an aborted signal.
 */
export type Client = ReturnType<typeof createClient>

/**
 * Creates a client for one API, with one key.
 * @throws {TypeError | RangeError} if an option can't be used.
 */
export function createClient({ maxRetries = 8, maxRetryMs = 300_000, ...options }: ClientOptions) {
  if (!(maxRetries >= 0 && maxRetryMs >= 0))
    throw new RangeError('maxRetries and maxRetryMs must be at least 0.')
  const send = createTransport(options)
  const lockSources = createSourceLocks()
  const retryBounds = { maxRetries, maxRetryMs }
  const batchDeps = { send, lockSources, retryBounds }

  const ask = (request: HttpRequest & RetryOptions): Promise<unknown> =>
    withRetries(retryBounds, request, async () => readJson(await send(request), request.signal))
  const askText = (request: HttpRequest & RetryOptions) =>
    withRetries(retryBounds, request, async () => {
      const response = await send(request)
      return readUnlessAborted(request.signal, () => response.text())
    })
  const get = (path: string, signal: AbortSignal | undefined, headers = {}) =>
    ask({ path, headers, signal })
  /** Returns undefined if the service answers with this problem. */
  const find = (path: string, signal: AbortSignal | undefined, unknown: ProblemCode) =>
    get(path, signal).catch((error) => {
      // Any other 404 means that the URL is wrong, or that the service is too old for this path.
      if (!(error instanceof SluiceProblem) || error.code !== unknown) throw error
    })

  async function limits(options: CallOptions = {}): Promise<ServiceLimits> {
    const { limits, waitSeconds, tenant } = (await get('limits', options.signal)) as LimitsAnswer
    const values = Object.entries({ ...limits, waitSeconds }).map(([name, { value }]) => [
      name,
      value,
    ])
    return { ...Object.fromEntries(values), ...(tenant !== undefined && { tenant }) }
  }

  return {
    /**
     * Posts a thread. Posts it again after a 429, 502 or 503, `acceptance_unknown`, a 504 of a
     * proxy, or a broken connection. Use an `idempotencyKey` if another process may post something
     * newer for the same source in between. After `job_pending`, the thread is accepted: pass the
     * error's `jobId` to `waitForJob`.
     */
    async post(thread: ThreadRequest, options: PostOptions = {}): Promise<PostResult> {
      const post = () => withRetries(retryBounds, options, () => postThread(send, thread, options))
      return lockSources([sourceOf(thread)], options.signal, post)
    },
    /**
     * Posts any number of threads in bounded chunks, and yields the results in the order of the
     * threads. Threads of the same source are never in flight together. While the consumer pauses,
     * no more input is read. If the consumer leaves the loop, all chunks in flight are aborted.
     */
    postMany(
      threads: Threads,
      options: PostManyOptions = {},
    ): AsyncGenerator<ItemResult, void, undefined> {
      const importBytes = async (signal: AbortSignal) => (await limits({ signal })).importBytes
      return postChunks({ ...batchDeps, importBytes }, threads, options)
    },
    /**
     * Posts a chunk that fits `importBytes`, and returns the results in the order of the threads.
     * Posts threads without a final result again. This is safe, because this client never has two
     * requests for the same source in flight.
     */
    async postBatch(
      threads: readonly ThreadRequest[],
      options: PostBatchOptions = {},
    ): Promise<ItemResult[]> {
      return postItems(batchDeps, threads.map(itemOf), options)
    },
    /**
     * Deletes a source with its quotes. Needs a key that may delete. Retries are safe: all attempts
     * are one deletion, which deletes nothing that was posted after it. After `job_pending`, it is
     * accepted: pass the `jobId` of the error to `waitForJob`.
     */
    deleteSource: (source: SourceReference, options: DeleteOptions = {}): Promise<DeletionAnswer> =>
      sendDeletion(ask, source, options),
    /**
     * Deletes any number of sources, and yields the results in their order. A retry of a chunk also
     * deletes what was posted between the attempts, and answers `absent` for what the first attempt
     * deleted: `onRetry` tells.
     */
    deleteSources: (
      sources: Iterable<SourceReference> | AsyncIterable<SourceReference>,
      options: DeleteManyOptions = {},
    ): AsyncGenerator<DeletedItem | RefusedItem, void, undefined> =>
      deleteChunks(askText, sources, options),
    /**
     * Waits until a job is `completed` or `failed`. If the signal ends the wait, the job continues.
     */
    async waitForJob(id: string, { signal }: CallOptions = {}): Promise<JobAnswer> {
      return followJob((path, headers) => get(path, signal, headers), id, signal)
    },
    /**
     * Returns a stored source with a page of its quotes. Returns undefined if the key's tenant has
     * no such source.
     */
    async getSource(
      source: SourceReference,
      { limit, after, signal }: PageOptions = {},
    ): Promise<SourcePage | undefined> {
      const path = pathOfSource(source, { limit, after })
      return (await find(path, signal, 'source_unknown')) as SourcePage | undefined
    },
    /**
     * Lists the sources of the key's tenant in pages, beginning with the source whose first request
     * was accepted last.
     */
    async listSources({
      service,
      since,
      limit,
      after,
      signal,
    }: ListOptions = {}): Promise<SourceList> {
      const query = queryOf({ service, since: since?.toISOString(), limit, after })
      return (await get(`sources${query}`, signal)) as SourceList
    },
    /**
     * Returns a page of the stored threads, of about 16 MiB. Posted in their order, they get the
     * same ids and fields.
     */
    async exportPage({
      signal,
      onRetry,
      since,
      ...query
    }: ExportOptions = {}): Promise<ExportPage> {
      const path = `sources:export${queryOf({ ...query, since: since?.toISOString() })}`
      const text = await askText({ path, signal, onRetry })
      const last = text.slice(text.lastIndexOf('\n', text.length - 2) + 1)
      if (!last.startsWith('{"next":')) return { ndjson: text }
      return { ndjson: text.slice(0, -last.length), ...JSON.parse(last) }
    },
    /**
     * Looks up any number of sources, with as many requests as needed. Returns the stored ones,
     * without their quotes.
     */
    async lookUpSources(
      service: Service,
      externalIds: readonly string[],
      { signal }: CallOptions = {},
    ): Promise<StoredSource[]> {
      const found: StoredSource[] = []
      let left = externalIds
      while (left.length > 0) {
        const body = JSON.stringify({ service, externalIds: left.slice(0, LOOKUP_SOURCES) })
        const answer = await ask({ path: 'sources:lookup', headers: JSON_BODY, body, signal })
        const { sources, rest = [] } = answer as LookupAnswer
        found.push(...sources)
        left = [...rest, ...left.slice(LOOKUP_SOURCES)]
      }
      return found
    },
    /**
     * Returns the progress of an import, by the `importId` of its requests. Returns undefined
     * before the first record.
     */
    async getImport(
      importId: string,
      { signal }: CallOptions = {},
    ): Promise<ImportProgress | undefined> {
      const path = `batches/${encodeURIComponent(importId)}`
      return (await find(path, signal, 'import_unknown')) as ImportProgress | undefined
    },
    limits,
  }
}

/**
 * The service returns at most PAGE_QUOTES quotes in a page, and looks up at most LOOKUP_SOURCES
 * sources in a request.
 */
const PAGE_QUOTES = 1_000
const LOOKUP_SOURCES = 1_000
const JSON_BODY = { 'content-type': 'application/json' }

type LookupAnswer = { sources: StoredSource[]; rest?: string[] }
type LimitsAnswer = {
  limits: Record<string, { value: number }>
  waitSeconds: { value: number }
  tenant?: string
}

/** Yields the pages of a stored source, or nothing if it is not stored. */
export async function* pagesOf(
  client: Pick<Client, 'getSource'>,
  name: SourceName,
  signal?: AbortSignal,
): AsyncGenerator<SourcePage> {
  let page: SourcePage | undefined
  do {
    page = await client.getSource(name, { limit: PAGE_QUOTES, after: page?.next, signal })
    if (page !== undefined) yield page
  } while (page?.next !== undefined)
}
