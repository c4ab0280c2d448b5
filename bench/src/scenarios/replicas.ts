import { startSluice } from '../contenders/start-sluice.ts'
import { makeThreads } from '../threads.ts'
import { interleave, medianOf } from './interleave.ts'
import { postRound, warmUp } from './post-round.ts'
import { atLeast, type Scenario } from './scenario.ts'

const CALLERS = 64
const REPLICAS = { '1 API': 1, '2 APIs': 2, '4 APIs': 4, '8 APIs': 8 }

type Name = keyof typeof REPLICAS
const NAMES: Name[] = ['1 API', '2 APIs', '4 APIs', '8 APIs']

/** API replicas on one queue must not slow each other down. */
export const replicas: Scenario = {
  name: 'replicas',
  title: 'API replicas on one queue with one worker; 64 callers in all',
  long: true,
  async run(bench) {
    const measured = await interleave(NAMES, bench.scale.rounds, async (name, round) => {
      // Started again for each round: idle replicas would cost something too.
      await using sluice = await startSluice(bench, {
        name: `replicas-${REPLICAS[name]}-${round}`,
        apis: REPLICAS[name],
      })
      await warmUp(bench, sluice, CALLERS, REPLICAS[name])
      return await postRound(bench, sluice, makeThreads(`round-${round}`, bench.scale.requests, round), CALLERS)
    })
    const alone = medianOf(measured, '1 API').rate
    const more = NAMES.filter((name) => REPLICAS[name] > 1)
    const floors = more.map((name) =>
      atLeast(`total rate of ${name}, against one`, medianOf(measured, name).rate / alone, 0.9),
    )
    return { measured, figures: [], floors }
  },
}
