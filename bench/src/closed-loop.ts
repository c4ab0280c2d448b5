import { percentiles, type Run } from './percentiles.ts'
import { createPoster } from './poster.ts'
import type { MadeThread } from './threads.ts'

export interface ClosedLoopOptions {
  prefer?: string
  expected?: number
  seconds?: number
}

/**
 * A number of callers post threads, each caller one request after the other, and expect the status
 * `expected`. After `seconds` they post no further threads.
 */
export async function closedLoop(
  urls: string | readonly string[],
  key: string,
  threads: readonly MadeThread[],
  callers: number,
  { prefer, expected = 200, seconds = Number.POSITIVE_INFINITY }: ClosedLoopOptions = {},
): Promise<Run> {
  const poster = createPoster([urls].flat(), key, callers, prefer)
  const times: number[] = []
  let failed = 0
  let next = 0
  const began = performance.now()
  const end = began + seconds * 1000
  async function caller(): Promise<void> {
    for (let thread = threads[next++]; thread !== undefined; thread = threads[next++]) {
      const sent = performance.now()
      if (sent > end) return
      const status = await poster.post(thread.body)
      times.push(performance.now() - sent)
      if (status !== expected) failed += 1
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  const took = (performance.now() - began) / 1000
  await poster.close()
  return { threads: times.length, rate: times.length / took, ...percentiles(times), failed }
}
