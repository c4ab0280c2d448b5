// Parses texts, large ones in a thread of their own: 10 MiB of hostile JSON takes seconds, during which nobody else would be served.
import { Worker } from 'node:worker_threads'
import { createTextParser, type Limits, type ParsedArray, type ParsedText, type TextParser } from '@sluice/contract'
import { textTooCostly } from './problems.ts'

/** Parses the texts of requests and items. */
export interface BodyParser {
  /** @throws {ProblemError} 413 if parsing takes too much memory. */
  thread(text: Buffer, options: { strict: boolean }): ParsedText | Promise<ParsedText>
  /** @throws {ProblemError} 413 if parsing takes too much memory. */
  array(text: Buffer, options: { strict: boolean; maxItems: number }): ParsedArray | Promise<ParsedArray>
  close(): Promise<void>
}

/** A request to the parsing thread: a method of the parser and its arguments. */
export type ParseCall = {
  [Kind in keyof TextParser]: { kind: Kind; text: Uint8Array; options: Parameters<TextParser[Kind]>[1] }
}[keyof TextParser]

/** Smaller texts take at most some 3 ms. Handing one over and back takes longer than parsing it. */
const LARGE_BYTES = 256 * 1024

/** Creates a parser for these limits. */
export function createBodyParser(limits: Limits): BodyParser {
  const here = createTextParser(limits)
  const there = createParsingThread(limits)
  const isLarge = (text: Buffer) => text.length > LARGE_BYTES
  return {
    thread: (text, options) =>
      isLarge(text) ? there.run<ParsedText>({ kind: 'thread', text, options }) : here.thread(text, options),
    array: (text, options) =>
      isLarge(text) ? there.run<ParsedArray>({ kind: 'array', text, options }) : here.array(text, options),
    close: there.close,
  }
}

/** The memory of the parsing thread, in MiB. 10 MiB of empty objects take 300. */
const THREAD_MIB = 512

interface Task {
  call: ParseCall
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** Runs one call at a time. The number of calls that wait is bounded by the memory of all bodies. */
function createParsingThread(limits: Limits) {
  const waiting: Task[] = []
  let current: Task | undefined
  let worker: Worker | undefined

  function start(): Worker {
    const started = new Worker(new URL('./parse-bodies.program.ts', import.meta.url), {
      workerData: limits,
      resourceLimits: { maxOldGenerationSizeMb: THREAD_MIB },
    })
    started.unref()
    started.on('message', (result) => finish((task) => task.resolve(result)))
    started.on('error', (error) => {
      worker = undefined
      finish((task) => task.reject(isOutOfMemory(error) ? textTooCostly() : error))
    })
    return started
  }

  function finish(settle: (task: Task) => void): void {
    const task = current
    current = undefined
    if (task !== undefined) settle(task)
    runNext()
  }

  function runNext(): void {
    if (current !== undefined) return
    current = waiting.shift()
    if (current === undefined) return
    worker ??= start()
    worker.postMessage(current.call, transferable(current.call.text))
  }

  return {
    run<Result>(call: ParseCall): Promise<Result> {
      return new Promise((resolve, reject) => {
        waiting.push({ call, resolve, reject })
        runNext()
      })
    },
    async close() {
      await worker?.terminate()
    },
  }
}

/** Memory that only this text uses is handed over without a copy. */
function transferable({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && buffer.byteLength <= 2 * byteLength ? [buffer] : []
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
}
