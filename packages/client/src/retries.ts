// Decides which failed requests are sent again, how often, and when.
import { type CallOptions, pause } from './abort.ts'
import { SluiceProblem, SluiceUnreachable } from './request-errors.ts'

export interface Retry {
  cause: SluiceProblem | SluiceUnreachable
  delayMs: number
}

export type RetryBounds = Record<'maxRetries' | 'maxRetryMs', number>

export interface RetryOptions extends CallOptions {
  /** Called before each pause. */
  onRetry?: ((retry: Retry) => void) | undefined
}

export type Retries = ReturnType<typeof startRetries>

const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 30_000

/** Counts the attempts of one request, and the time since the first one. */
export function startRetries(
  { maxRetries, maxRetryMs }: RetryBounds,
  { signal, onRetry }: RetryOptions,
) {
  let attempts = 0
  let since = performance.now()
  return {
    /** Waits before the next attempt. Returns false without waiting if the bounds are used up. */
    async waitAfter(cause: Retry['cause']) {
      if (attempts >= maxRetries) return false
      const delayMs = pauseMs(attempts, cause)
      if (performance.now() - since + delayMs > maxRetryMs) return false
      attempts += 1
      onRetry?.({ cause, delayMs })
      await pause(delayMs, signal)
      return true
    },
    /** Begins to count attempts and time again, because an attempt made progress. */
    reset() {
      attempts = 0
      since = performance.now()
    },
  }
}

/**
 * Sends a request until it succeeds. Throws the last error if another attempt would not help, or if
 * the bounds are used up.
 */
export async function withRetries<T>(
  bounds: RetryBounds,
  options: RetryOptions,
  send: () => Promise<T>,
): Promise<T> {
  const retries = startRetries(bounds, options)
  for (;;) {
    try {
      return await send()
    } catch (error) {
      if (!isRetryable(error) || !(await retries.waitAfter(error))) throw error
    }
  }
}

/**
 * Returns whether a request may be sent again. This is safe, because nothing newer for its source
 * is in flight.
 */
export function isRetryable(cause: unknown): cause is SluiceProblem | SluiceUnreachable {
  return cause instanceof SluiceUnreachable || (cause instanceof SluiceProblem && isPassing(cause))
}

/**
 * Returns whether another attempt may succeed. After `job_pending`, none is needed, because the
 * request is accepted.
 */
export function isPassing({ status, code }: { status: number; code: string | undefined }): boolean {
  if (status === 504) return code === undefined || code === 'acceptance_unknown'
  return status === 429 || status === 502 || status === 503
}

/**
 * Returns the pause before the next attempt: exponential back-off with full jitter, but at least
 * what the service asks for.
 */
function pauseMs(attempts: number, cause: SluiceProblem | SluiceUnreachable): number {
  const backOff = Math.random() * Math.min(FIRST_PAUSE_MS * 2 ** attempts, LONGEST_PAUSE_MS)
  const asked = cause instanceof SluiceProblem ? cause.retryAfter : undefined
  return asked === undefined ? backOff : asked * 1000 + Math.min(backOff, FIRST_PAUSE_MS)
}
