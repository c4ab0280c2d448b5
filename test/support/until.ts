import { setTimeout as pause } from 'node:timers/promises'

const ASK_EVERY_MS = 25

/** Asks repeatedly until the answer is truthy, and returns it. Throws after `ms` milliseconds, with `what` in its message. */
export async function until<T>(what: string, ms: number, ask: () => T | Promise<T>): Promise<T> {
  const end = performance.now() + ms
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`)
    await pause(ASK_EVERY_MS)
  }
}
