import { setTimeout as pause } from 'node:timers/promises'

/**
 * The pause before the next question is this share of the time since the first one, in these
 * bounds: what is true at once costs no wait, and what takes seconds leaves the machine to others.
 */
const PAUSE_SHARE = 0.1
const PAUSE_MS = [25, 250] as const
/**
 * The bound where no promise is tested: a busy machine may need a minute for what an idle one does
 * at once.
 */
const HANG_MS = 60_000
/**
 * What a busy machine may add to a time that is promised, in ms. Tests run beside each other, so no
 * bound is the promise alone. It is below each time limit that a broken promise would meet instead:
 * the wait for a job is 30 s.
 */
export const BUSY_MS = 2_000

/**
 * Asks repeatedly until the answer is truthy, and returns it. Throws after `withinMs`, with `what`
 * in its message.
 */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  withinMs = HANG_MS,
): Promise<NonNullable<T>> {
  const [shortest, longest] = PAUSE_MS
  const began = performance.now()
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    const ms = performance.now() - began
    if (ms > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`)
    await pause(Math.min(Math.max(shortest, ms * PAUSE_SHARE), longest))
  }
}
