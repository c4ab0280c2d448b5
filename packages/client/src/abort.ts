// Ends waits when a signal is aborted. Each function throws the signal's reason, as `fetch` does.
import { setTimeout as delay } from 'node:timers/promises'

export interface CallOptions {
  /** Aborts the call, its requests and its pauses. */
  signal?: AbortSignal | undefined
}

/** Waits for a promise, or until the signal is aborted. The work behind the promise continues. */
export async function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (signal === undefined) return promise
  let abort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** Waits for a time, or until the signal is aborted. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await delay(ms, undefined, signal && { signal }).catch((error) => {
    signal?.throwIfAborted()
    throw error
  })
}
