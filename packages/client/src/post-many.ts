// Posts any number of threads in chunks, several at a time, and yields their results in the order
// of the input.
import { Readable } from 'node:stream'
import { unlessAborted } from './abort.ts'
import type { ThreadRequest } from './contract.ts'
import {
  type BatchItem,
  type ItemResult,
  itemOf,
  type PostBatchDeps,
  type PostBatchOptions,
  postItems,
} from './post-batch.ts'

export interface PostManyOptions extends PostBatchOptions {
  /** The chunks that are in flight at a time. Default: 4. */
  concurrency?: number | undefined
  /** The threads in a chunk. Default: 1,000. */
  chunkThreads?: number | undefined
  /**
   * The bytes of a chunk, at most the service's `importBytes`. A larger thread is a separate chunk.
   * Default: 4 MiB.
   */
  chunkBytes?: number | undefined
}

interface PostManyDeps extends PostBatchDeps {
  /** Returns how many bytes the service accepts in one import. */
  importBytes(signal: AbortSignal): Promise<number>
}

export type Threads = Iterable<ThreadRequest> | AsyncIterable<ThreadRequest>

/**
 * Results arrive while a chunk is being sent, so larger chunks would gain nothing. Smaller chunks
 * would cost more round trips.
 */
const CHUNK_THREADS = 1_000
const CHUNK_BYTES = 4 * 1024 * 1024
const CONCURRENCY = 4

/**
 * Posts threads in chunks, and reads only one chunk ahead. When the consumer leaves or a chunk
 * fails, aborts all chunks in flight and closes the input. If the input throws, the error is thrown
 * after the results of all threads before it.
 */
export async function* postChunks(
  { importBytes, ...deps }: PostManyDeps,
  threads: Threads,
  { signal, onRetry, importId, ...options }: PostManyOptions,
): AsyncGenerator<ItemResult, void, undefined> {
  const {
    concurrency = CONCURRENCY,
    chunkThreads = CHUNK_THREADS,
    chunkBytes = CHUNK_BYTES,
  } = options
  requireWholeNumbers({ concurrency, chunkThreads, chunkBytes })
  const leaving = new AbortController()
  const ended = signal === undefined ? leaving.signal : AbortSignal.any([signal, leaving.signal])
  const chunks = chunksOf(threads, chunkThreads, Math.min(chunkBytes, await importBytes(ended)))
  const post = (items: readonly BatchItem[]) =>
    postItems(deps, items, { signal: ended, onRetry, importId })
  try {
    let yielded = 0
    for await (const results of inOrder(chunks, post, concurrency, ended))
      for (const result of results) yield { ...result, index: yielded++ }
  } finally {
    leaving.abort()
    // Not awaited, because an input that never yields its next thread must not keep the consumer
    // from leaving.
    handled(chunks.return())
  }
}

type Chunks = AsyncGenerator<BatchItem[], void, undefined>

/** Keeps up to `concurrency` chunks in flight, and yields the results of the oldest one. */
async function* inOrder(
  chunks: Chunks,
  post: (items: readonly BatchItem[]) => Promise<ItemResult[]>,
  concurrency: number,
  signal: AbortSignal,
): AsyncGenerator<ItemResult[], void, undefined> {
  async function* postInTurn(): AsyncGenerator<{ results: Promise<ItemResult[]> }> {
    try {
      for await (const chunk of chunks) yield { results: handled(post(chunk)) }
    } catch (error) {
      yield { results: handled(Promise.reject(error)) }
    }
  }
  // A Readable reads ahead, so chunks are posted while results of earlier chunks are awaited.
  const posted = Readable.from(postInTurn(), { highWaterMark: concurrency - 1 })[
    Symbol.asyncIterator
  ]()
  for (;;) {
    const { value, done } = await unlessAborted(posted.next(), signal)
    if (done) return
    yield await unlessAborted<ItemResult[]>(value.results, signal)
  }
}

/**
 * Marks a rejection as handled: if the consumer has left, nobody awaits the promise, and the
 * rejection would end the process.
 */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

async function* chunksOf(threads: Threads, maxThreads: number, maxBytes: number): Chunks {
  let chunk: BatchItem[] = []
  let bytes = 0
  function* flush() {
    if (chunk.length > 0) yield chunk
    chunk = []
    bytes = 0
  }
  try {
    for await (const thread of threads) {
      const item = itemOf(thread)
      const itemBytes = Buffer.byteLength(item.line) + 1
      if (bytes + itemBytes > maxBytes) yield* flush()
      chunk.push(item)
      bytes += itemBytes
      if (chunk.length === maxThreads) yield* flush()
    }
  } catch (error) {
    // Post the threads before the error.
    yield* flush()
    throw error
  }
  yield* flush()
}

function requireWholeNumbers(options: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(options))
    if (!Number.isInteger(value) || value < 1)
      throw new RangeError(`${name} must be a whole number of at least 1.`)
}
