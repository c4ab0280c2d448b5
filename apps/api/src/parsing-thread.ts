// Parses large texts in a thread of their own, which runs `parse-bodies.program.ts`.
import { Worker } from 'node:worker_threads'
import type { Limits, TextParser } from '@sluice/contract'

/** A request to the parsing thread: a method of the parser and its arguments. */
export type ParseCall = {
  [Kind in keyof TextParser]: { kind: Kind; text: Uint8Array; options: Parameters<TextParser[Kind]>[1] }
}[keyof TextParser]

/**
 * The memory of the parsing thread: at least this many MiB, and this many bytes for each byte of the largest text. V8 ends the whole process if
 * `JSON.parse` exceeds it. The costliest texts, of empty objects in arrays, take 29 bytes for each byte.
 */
const LEAST_THREAD_MIB = 512
const THREAD_BYTES_PER_BYTE = 64

interface Task {
  call: ParseCall
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** Creates the thread. It runs one call at a time. The number of calls that wait is bounded by the memory of all bodies. */
export function createParsingThread(limits: Limits) {
  const threadMib = Math.max(LEAST_THREAD_MIB, (THREAD_BYTES_PER_BYTE * limits.bodyBytes) / 2 ** 20)
  const waiting: Task[] = []
  let current: Task | undefined
  let worker: Worker | undefined

  function start(): Worker {
    const started = new Worker(new URL('./parse-bodies.program.ts', import.meta.url), {
      workerData: limits,
      resourceLimits: { maxOldGenerationSizeMb: threadMib },
    })
    started.unref()
    started.on('message', (result) => finish((task) => task.resolve(result)))
    started.on('error', (error) => {
      worker = undefined
      finish((task) => task.reject(error))
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
