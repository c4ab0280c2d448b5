// The thread that parses large texts. See parsing-thread.ts.
import { parentPort, workerData } from 'node:worker_threads'
import { createTextParser } from '@sluice/contract'
import type { ParseCall } from './parsing-thread.ts'

const parser = createTextParser(workerData)

parentPort?.on('message', ({ kind, text, options }: ParseCall) => {
  const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength)
  parentPort?.postMessage(kind === 'array' ? parser.array(bytes, options) : parser.thread(bytes, options))
})
