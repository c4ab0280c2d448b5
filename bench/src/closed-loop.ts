import { percentiles, type Run } from './percentiles.ts'
import { createPoster } from './poster.ts'
import type { MadeThread } from './threads.ts'

/** A number of callers post threads, each caller one request after the other, and expect the status `expected`. */
export async function closedLoop(
  urls: string | readonly string[],
  key: string,
  threads: readonly MadeThread[],
  callers: number,
  { prefer, expected = 200 }: { prefer?: string; expected?: number } = {},
): Promise<Run> {
  const poster = createPoster([urls].flat(), key, callers, prefer)
  const times: number[] = []
  let failed = 0
  let next = 0
  async function caller(): Promise<void> {
    for (let thread = threads[next++]; thread !== undefined; thread = threads[next++]) {
      const sent = performance.now()
      const status = await poster.post(thread.body)
      times.push(performance.now() - sent)
      if (status !== expected) failed += 1
    }
  }
  const began = performance.now()
  await Promise.all(Array.from({ length: callers }, caller))
  const seconds = (performance.now() - began) / 1000
  await poster.close()
  return { rate: threads.length / seconds, ...percentiles(times), failed }
}
