import { setTimeout as pause } from 'node:timers/promises'

const ASK_EVERY_MS = 25
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
  const end = performance.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`)
    await pause(ASK_EVERY_MS)
  }
}
