import type { Bench } from '../bench.ts'
import type { Contender } from '../contenders/contender.ts'
import { measureRound, type Round } from '../measure/round.ts'
import { type MadeThread, makeThreads } from '../threads.ts'

/** Has a contender store these threads, and records the cost. */
export function postRound(
  bench: Bench,
  contender: Pick<Contender, 'processes' | 'run'>,
  threads: readonly MadeThread[],
  callers: number,
): Promise<Round> {
  const processes = [...contender.processes, ...bench.surroundings]
  return measureRound(processes, documentsPerThread(threads), () => contender.run(threads, callers))
}

/**
 * Warms a contender up: compiles its code and opens its connections.
 *
 * @param replicas share the requests; each of them needs as many.
 */
export async function warmUp(
  { scale }: Bench,
  contender: Pick<Contender, 'run'>,
  callers: number,
  replicas = 1,
): Promise<void> {
  await contender.run(makeThreads(`warm-up-${callers}`, scale.warmUp * replicas, 1_000), callers)
}

/** Sources and quotes in a thread on average, reposts included. */
export function documentsPerThread(threads: readonly MadeThread[]): number {
  return threads.reduce((sum, { quotes }) => sum + 1 + quotes, 0) / threads.length
}
