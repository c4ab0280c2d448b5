// Parses texts, and builds the answers of completed jobs from the request and the receipt that
// Redis keeps. Large ones are handled in a separate thread, whose program is also this file.
import { once } from 'node:events'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import {
  createTextParser,
  type JobAnswer,
  type Limits,
  type ParsedArray,
  type ParsedText,
  type TextParser,
  type Thread,
  type ThreadAnswer,
} from '@sluice/contract'
import { type IngestJob, type JobResult, readReceipt, type ThreadReceipt } from '@sluice/queue/job'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'

/**
 * Smaller texts are parsed within about 3 ms, which takes less time than moving them to another
 * thread and back.
 */
const LARGE_BYTES = 256 * 1024

export type BodyParser = ReturnType<typeof createBodyParser>

/**
 * Parses large texts, and builds large answers, in a separate thread, because 10 MiB of hostile
 * JSON would block the event loop for seconds.
 */
export function createBodyParser(limits: Limits) {
  const here = createTextParser(limits)
  const there = createParsingThread(limits)
  const parserOf = (text: Buffer) => (text.length > LARGE_BYTES ? there : here)
  return {
    thread: (text: Buffer, options: { strict: boolean }) => parserOf(text).thread(text, options),
    array: (text: Buffer, options: { strict: boolean; maxItems: number }) =>
      parserOf(text).array(text, options),
    jobAnswer: async (job: CompletedState, texts: { data: Buffer; result: Buffer }) =>
      texts.data.length + texts.result.length > LARGE_BYTES
        ? there.jobAnswer(job, texts)
        : completedAnswer(job, texts),
    close: there.close,
  }
}

type ThreadOptions = Parameters<TextParser['thread']>[1]
type ArrayOptions = Parameters<TextParser['array']>[1]

/** A request to the parsing thread. `maxItems` distinguishes the options of an array. */
type Call =
  | { text: Uint8Array; options: ThreadOptions | ArrayOptions }
  | { job: CompletedState; data: Uint8Array; result: Uint8Array }

/**
 * The parsing thread's memory is at least LEAST_THREAD_MIB, and THREAD_BYTES_PER_BYTE for each byte
 * of the largest text. If `JSON.parse` needs more, V8 ends the whole process. The worst texts,
 * empty objects in arrays, need 29 bytes per byte.
 */
const LEAST_THREAD_MIB = 512
const THREAD_BYTES_PER_BYTE = 64

/**
 * Creates the thread. It runs one call at a time. The memory budget of all bodies also bounds the
 * number of waiting calls.
 */
function createParsingThread(limits: Limits) {
  const threadMib = Math.max(LEAST_THREAD_MIB, (THREAD_BYTES_PER_BYTE * limits.bodyBytes) / 2 ** 20)
  let last: Promise<unknown> = Promise.resolve()
  let worker: Worker | undefined

  function start(): Worker {
    const started = new Worker(new URL(import.meta.url), {
      workerData: { [OF_THREAD]: limits },
      resourceLimits: { maxOldGenerationSizeMb: threadMib },
    })
    started.unref()
    return started.on('error', () => (worker = undefined))
  }

  function run<Result>(call: Call): Promise<Result> {
    const result = last.then(async () => {
      worker ??= start()
      worker.postMessage(call, transferable('job' in call ? call.data : call.text))
      const [answer] = await once(worker, 'message')
      return answer
    })
    last = result.catch(() => {})
    return result
  }

  return {
    thread: (text: Buffer, options: ThreadOptions) => run<ParsedText>({ text, options }),
    array: (text: Buffer, options: ArrayOptions) => run<ParsedArray>({ text, options }),
    async jobAnswer(job: CompletedState, texts: { data: Buffer; result: Buffer }): Promise<Buffer> {
      return bufferOf(await run<Uint8Array>({ job, ...texts }))
    },
    async close() {
      await worker?.terminate()
    },
  }
}

/**
 * Lists the memory that can be moved to another thread without a copy. Lists none if the text fills
 * less than half of its memory, because other texts may share the memory.
 */
function transferable({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && buffer.byteLength <= 2 * byteLength ? [buffer] : []
}

/**
 * Only the `workerData` of the parsing thread has this key. Other threads may load this file as
 * well.
 */
const OF_THREAD = 'limitsOfParsingThread'

const limitsOfThread: Limits | undefined = workerData?.[OF_THREAD]
if (limitsOfThread !== undefined) answerCalls(limitsOfThread)

function answerCalls(limits: Limits): void {
  const parser = createTextParser(limits)
  parentPort?.on('message', (call: Call) => {
    if ('job' in call) {
      const answer = completedAnswer(call.job, {
        data: bufferOf(call.data),
        result: bufferOf(call.result),
      })
      return parentPort?.postMessage(answer, transferable(answer))
    }
    const { text, options } = call
    const bytes = bufferOf(text)
    parentPort?.postMessage(
      'maxItems' in options ? parser.array(bytes, options) : parser.thread(bytes, options),
    )
  })
}

/** A Buffer arrives in another thread as a plain array of bytes. */
function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/**
 * What the answer about a completed job says besides the answer that a waiting caller would have
 * got.
 */
type CompletedState = Pick<JobAnswer, 'id' | 'state' | 'changedAt' | 'attempts'>

/** Builds the answer of GET /jobs/{id} as JSON, from a job's payload and its result (both JSON). */
function completedAnswer(
  job: CompletedState,
  texts: Readonly<Record<'data' | 'result', Buffer>>,
): Buffer {
  const { tenant, threads }: IngestJob = JSON.parse(texts.data.toString())
  const { receipts }: JobResult = JSON.parse(texts.result.toString())
  const [[thread], [receipt]] = [threads, receipts]
  // Only operators may look up a job of several threads.
  if (!thread || !receipt || threads.length > 1) return Buffer.alloc(0)
  const ended: JobAnswer = { ...job }
  if (!('outcomes' in receipt)) ended.deletion = receipt.source
  else if ('source' in thread) ended.result = threadAnswer(tenant, thread, receipt)
  return Buffer.from(JSON.stringify(ended))
}

/** Builds the answer of a stored thread from its request and the receipt of its job. */
export function threadAnswer(tenant: string, thread: Thread, receipt: ThreadReceipt): ThreadAnswer {
  const source = sourceIdOf(tenant, thread.source)
  return readReceipt(thread, receipt, { source, quotes: quoteIdsOf(source, thread.quotes) })
}
