import { setTimeout as pause } from 'node:timers/promises'

const ASK_EVERY_MS = 25

/** Asks again and again until the answer is truthy, and gives that answer; throws once `ms` are over. `what` is for its message. */
export async function until<T>(what: string, ms: number, ask: () => T | Promise<T>): Promise<T> {
  const end = performance.now() + ms
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`)
    await pause(ASK_EVERY_MS)
  }
}
