// Posts threads by POST /sources:batch. Threads of the same source are in separate requests. Posts
// a thread again if it got no result, or a result that another attempt may change.
import type * as contract from './contract.ts'
import { SluiceProblem, SluiceUnreachable } from './request-errors.ts'
import {
  isPassing,
  isRetryable,
  type Retries,
  type RetryBounds,
  type RetryOptions,
  startRetries,
} from './retries.ts'
import { type LockSources, sourceOf } from './source-locks.ts'
import { NDJSON_BODY, readUnlessAborted, type Send } from './transport.ts'

export interface PostBatchDeps {
  send: Send
  lockSources: LockSources
  retryBounds: RetryBounds
}

export interface PostBatchOptions extends RetryOptions {
  /** A UUID that the caller chooses. Operators see all batches with the same UUID as one import. */
  importId?: string | undefined
}

export interface BatchItem {
  source: string
  externalId: unknown
  /** The thread as JSON, without a newline. */
  line: string
}

/**
 * A stored thread. After a broken connection, the outcome may be `unchanged` although the first
 * attempt created the thread.
 */
export interface StoredItem extends contract.StoredItem {
  problem?: undefined
}

/** A thread that was refused, or that is not known to be stored. */
export interface FailedItem extends Omit<contract.RefusedItem, 'line'> {
  outcome?: undefined
}

export type ItemResult = StoredItem | FailedItem

/** Prepares a thread to be posted. */
export function itemOf(thread: contract.ThreadRequest): BatchItem {
  // If a thread has no JSON, send `null`, which the service refuses. The service would skip a blank
  // line, and each later result would be taken for a neighbour's.
  return {
    source: sourceOf(thread),
    externalId: Object(thread).externalId,
    line: JSON.stringify(thread) ?? 'null',
  }
}

/**
 * Posts a chunk of threads, threads of the same source one after the other. Returns the results in
 * the order of the threads. Throws SluiceProblem or SluiceUnreachable when all retries are used up:
 * it is safe to post all of them again.
 */
export function postItems(
  { send, lockSources, retryBounds }: PostBatchDeps,
  items: readonly BatchItem[],
  options: PostBatchOptions,
): Promise<ItemResult[]> {
  const sources = items.map(({ source }) => source)
  return lockSources(sources, options.signal, async () => {
    const results: ItemResult[] = []
    for (const run of runsOfDistinctSources(items)) {
      const posted = await postRun(send, run, startRetries(retryBounds, options), options)
      for (const [at, result] of posted.entries())
        results.push(placed(result, results.length, run[at]))
    }
    return results
  })
}

/**
 * Sets a result's index among all threads, and its externalId, because the service may not have
 * been able to read it.
 */
function placed(
  result: ItemResult & { line?: number },
  index: number,
  item: BatchItem | undefined,
): ItemResult {
  const { line: _, ...kept } = result
  return {
    ...kept,
    index,
    ...(typeof item?.externalId === 'string' && { externalId: item.externalId }),
  }
}

function runsOfDistinctSources(items: readonly BatchItem[]): BatchItem[][] {
  const runs: BatchItem[][] = []
  const seen = new Set<string>()
  for (const item of items) {
    if (runs.length === 0 || seen.has(item.source)) {
      runs.push([])
      seen.clear()
    }
    runs.at(-1)?.push(item)
    seen.add(item.source)
  }
  return runs
}

/**
 * Posts threads of distinct sources until each has a result that another attempt would not change.
 */
async function postRun(
  send: Send,
  items: readonly BatchItem[],
  retries: Retries,
  options: PostBatchOptions,
): Promise<ItemResult[]> {
  const results = new Map<BatchItem, ItemResult>()
  let open = items
  while (open.length > 0) {
    const failure = await postOnce(send, open, options, results)
    const left = open.filter((item) => {
      const result = results.get(item)
      return result === undefined || !isFinal(result)
    })
    if (left.length < open.length) retries.reset()
    open = left
    if (failure !== undefined && !isRetryable(failure)) throw failure
    if (open.length > 0 && !(await retries.waitAfter(failure ?? firstProblem(results, open)))) {
      if (failure !== undefined) throw failure
      break
    }
  }
  return items.map((item) => results.get(item)).filter((result) => result !== undefined)
}

/** Returns whether posting the thread again would have the same result. */
export function isFinal({ problem }: ItemResult): boolean {
  if (problem === undefined) return true
  // The job of a pending thread continues. Posting the thread again waits for the job, and confirms
  // that the thread is stored.
  return !isPassing(problem) && problem.code !== 'job_pending'
}

function firstProblem(
  results: ReadonlyMap<BatchItem, ItemResult>,
  open: readonly BatchItem[],
): SluiceProblem {
  const problem = open
    .map((item) => results.get(item)?.problem)
    .find((found) => found !== undefined)
  return new SluiceProblem(problem?.status ?? 503, problem)
}

/**
 * Posts threads once, and notes each result when it arrives. If some threads get no result, returns
 * the error.
 */
async function postOnce(
  send: Send,
  items: readonly BatchItem[],
  { signal, importId }: PostBatchOptions,
  results: Map<BatchItem, ItemResult>,
): Promise<unknown> {
  const body = items.map(({ line }) => `${line}\n`).join('')
  try {
    const headers = importId === undefined ? NDJSON_BODY : { ...NDJSON_BODY, 'import-id': importId }
    const response = await send({ path: 'sources:batch', headers, body, signal })
    await readUnlessAborted(signal, async () => {
      for await (const arrived of readResults(response)) {
        for (const result of arrived) {
          const item = items[result.index]
          if (item !== undefined && !isOfBody(result)) results.set(item, result)
        }
      }
    })
    if (items.every((item) => results.has(item))) return undefined
    return new SluiceUnreachable('Sluice answered without a result for some threads.')
  } catch (error) {
    signal?.throwIfAborted()
    if (!isTooLarge(error) || items.length > 1) return error
    for (const item of items)
      results.set(item, { index: 0, status: error.status, problem: error.problem })
    return undefined
  }
}

/**
 * Yields results as they arrive. A line that is cut off counts as missing. Throws if the connection
 * breaks.
 */
async function* readResults(response: Response): AsyncGenerator<readonly ItemResult[]> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    const values = lines.map((line) => JSON.parse(line))
    yield values.filter((value) => value.summary === undefined)
  }
}

/**
 * Returns whether a result belongs to no thread, but stands for the rest of a body that the service
 * could not read.
 */
function isOfBody({ problem }: ItemResult): boolean {
  return problem?.code === 'body_unreadable' || problem?.code === 'request_timeout'
}

/** Returns whether the error says that the body has more bytes than an import may have. */
function isTooLarge(error: unknown): error is SluiceProblem & { problem: contract.Problem } {
  return error instanceof SluiceProblem && error.status === 413 && error.problem !== undefined
}
