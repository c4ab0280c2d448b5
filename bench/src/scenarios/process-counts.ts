import type { Bench } from '../bench.ts'
import { startSluice } from '../contenders/start-sluice.ts'
import { makeThreads } from '../threads.ts'
import { interleave, medianOf } from './interleave.ts'
import { postRound, warmUp } from './post-round.ts'
import { atLeast, type Outcome, type Scenario } from './scenario.ts'

const CALLERS = 64

/** A number of processes, and the least rate, as a multiple of the rate of one process. */
interface Count {
  name: string
  count: number
  floor?: number
}

/** API replicas on one queue must not slow each other down. */
export const replicas: Scenario = {
  name: 'replicas',
  title: 'API replicas on one queue with one worker; 64 callers in all',
  long: true,
  run: (bench) =>
    compareCounts(bench, 'apis', [
      { name: '1 API', count: 1 },
      { name: '2 APIs', count: 2, floor: 0.9 },
      { name: '4 APIs', count: 4, floor: 0.9 },
      { name: '8 APIs', count: 8, floor: 0.9 },
    ]),
}

/** More workers than the load needs must not make a thread dearer. */
export const workers: Scenario = {
  name: 'workers',
  title: 'Workers on one queue with one API; 64 callers',
  long: true,
  run: (bench) =>
    compareCounts(bench, 'workers', [
      { name: '1 worker', count: 1 },
      { name: '2 workers', count: 2, floor: 0.95 },
      { name: '4 workers', count: 4, floor: 0.9 },
      { name: '8 workers', count: 8, floor: 0.8 },
    ]),
}

async function compareCounts(
  bench: Bench,
  kind: 'apis' | 'workers',
  counts: readonly Count[],
): Promise<Outcome> {
  const countOf = new Map(counts.map(({ name, count }) => [name, count]))
  const measured = await interleave(
    [...countOf.keys()],
    bench.scale.rounds,
    async (name, round) => {
      const count = countOf.get(name) ?? 1
      // Started again for each round: idle processes would cost something too.
      await using sluice = await startSluice(bench, {
        name: `${kind}-${count}-${round}`,
        [kind]: count,
      })
      await warmUp(bench, sluice, CALLERS, count)
      return await postRound(
        bench,
        sluice,
        makeThreads(`round-${round}`, bench.scale.requests, round),
        CALLERS,
      )
    },
  )
  const one = measured[0]?.median.rate ?? 0
  const floors = counts.flatMap(({ name, floor }) =>
    floor === undefined
      ? []
      : [atLeast(`rate of ${name}, against one`, medianOf(measured, name).rate / one, floor)],
  )
  return { measured, figures: [], floors }
}
