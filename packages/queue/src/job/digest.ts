// Digests of threads, which identify their contents.
import { hash } from 'node:crypto'
import type { IngestJob } from './job.ts'

/** A job's threads are its last field: see `jobEntry`. JSON strings escape quotation marks. */
const THREADS = '"threads":'

/** Identifies the threads of a job as a whole. */
export function digestOf(text: string): string {
  return digest(text.slice(text.indexOf(THREADS) + THREADS.length, -1))
}

/** Identifies each thread of a job. A thread has the same digest in any job. */
export function digestsOf({ threads }: IngestJob, text: string): string[] {
  if (threads.length === 1) return [digestOf(text)]
  return threads.map((thread) => digest(JSON.stringify([thread])))
}

/** 144 bits, as in ids. */
function digest(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 24)
}
