import { setTimeout as delay } from 'node:timers/promises'
import { ObjectId } from 'mongodb'

// Everything of a process that the store depends on besides MongoDB, so that tests can decide it.

export interface Runtime {
  /** Milliseconds since 1970, by this machine's clock. */
  now(): number
  /** Milliseconds by a clock that never jumps. */
  monotonic(): number
  /** Resolves after so many milliseconds. Keeps no process alive. */
  delay(ms: number): Promise<void>
  /** A number from 0 to below 1. */
  random(): number
  /** An id that no other call ever returns, on any machine. */
  newId(): ObjectId
}

export const processRuntime: Runtime = {
  now: Date.now,
  monotonic: () => performance.now(),
  delay: (ms) => delay(ms, undefined, { ref: false }),
  random: Math.random,
  newId: () => new ObjectId(),
}
