// Posts a thread, and follows the job of a thread for which nobody waited.
import { type CallOptions, pause } from './abort.ts'
import type { AcceptedAnswer, JobAnswer, ThreadAnswer, ThreadRequest } from './contract.ts'
import { SluiceUnreachable } from './request-errors.ts'
import { readJson, type Send } from './transport.ts'

export interface PostOptions extends CallOptions {
  /**
   * For 24 hours, the same thread gets the same answer without another job. At most 255 visible
   * characters.
   */
  idempotencyKey?: string | undefined
  /**
   * Waits at most this number of seconds until the thread is stored, otherwise returns `accepted`.
   * With 0, does not wait.
   */
  wait?: number | undefined
}

/** The thread is stored, or it is accepted and its job continues: see `waitForJob`. */
export type PostResult =
  | { kind: 'stored'; answer: ThreadAnswer }
  | { kind: 'accepted'; jobId: string; answer: AcceptedAnswer }

/** Posts a thread, without retries. */
export async function postThread(
  send: Send,
  thread: ThreadRequest,
  { signal, ...options }: PostOptions,
): Promise<PostResult> {
  const body = JSON.stringify(thread) ?? 'null'
  const response = await send({ path: 'sources', headers: headersOf(options), body, signal })
  const answer = await readJson(response, signal)
  // The service answers according to the schemas of the contract, from which these types are
  // generated.
  if (response.status === 200) return { kind: 'stored', answer: answer as ThreadAnswer }
  return { kind: 'accepted', jobId: jobIdOf(response), answer: answer as AcceptedAnswer }
}

function headersOf({ idempotencyKey, wait }: PostOptions): Record<string, string> {
  if (wait !== undefined && !(wait >= 0))
    throw new RangeError('wait must be a number of seconds of at least 0.')
  return {
    'content-type': 'application/json',
    ...(wait !== undefined && { prefer: `wait=${Math.floor(wait)}` }),
    ...(idempotencyKey !== undefined && { 'idempotency-key': quotedString(idempotencyKey) }),
  }
}

/** Quotes a text in the form that RFC 9651 defines for strings in headers. */
export function quotedString(text: string): string {
  if (!/^[ -~]*$/.test(text))
    throw new TypeError('idempotencyKey must have only visible ASCII characters.')
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`
}

function jobIdOf(response: Response): string {
  const id = /\/jobs\/([^/?]+)$/.exec(response.headers.get('location') ?? '')?.[1]
  if (id === undefined)
    throw new SluiceUnreachable('The answer names no job: it is not from Sluice.')
  return id
}

/** A request waits at most this long, because proxies often cut an answer after a minute. */
const WAIT_SECONDS = 25
/** If the service answers without waiting, the next request follows after this time. */
const POLL_MS = 1_000

/** Asks for a job until it is completed or failed. */
export async function followJob(
  get: (path: string, headers: Record<string, string>) => Promise<unknown>,
  id: string,
  signal: AbortSignal | undefined,
): Promise<JobAnswer> {
  for (;;) {
    const began = performance.now()
    const job = (await get(`jobs/${encodeURIComponent(id)}`, {
      prefer: `wait=${WAIT_SECONDS}`,
    })) as JobAnswer
    if (job.state === 'completed' || job.state === 'failed') return job
    const passed = performance.now() - began
    if (passed < POLL_MS) await pause(POLL_MS - passed, signal)
  }
}
