// What identifies a job and its threads: ids and digests.
import { hash, randomUUID } from 'node:crypto'
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

/** Returns a job id that sorts by time (UUIDv7, RFC 9562) and can't be guessed. */
export function newJobId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  // Node draws the randomness of many UUIDs at once, at a tenth of the cost of drawing it for each.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

const JOB_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Checks the form of a job's, an import's or an operation's id. Another text could name another key, or be a secret. */
export function isJobId(text: string): boolean {
  return JOB_ID.test(text)
}
