import { startSluice } from '../contenders/start-sluice.ts'
import { makeThreads } from '../threads.ts'
import { interleave, medianOf } from './interleave.ts'
import { postRound, warmUp } from './post-round.ts'
import { atLeast, type Scenario } from './scenario.ts'

const CALLERS = 64

/** Unchanged threads, posted again as importers do every day. */
export const reposts: Scenario = {
  name: 'reposts',
  title: 'Reposts that change nothing, against first posts; 64 callers',
  long: false,
  async run(bench) {
    await using sluice = await startSluice(bench)
    await warmUp(bench, sluice, CALLERS)
    const { rounds, requests } = bench.scale
    const posts = ['first', 'again'] as const
    // A round that begins with the repost uses the threads of the round before; the very first is
    // discarded.
    let made = makeThreads('round', requests, 0, 0)
    const measured = await interleave(posts, rounds, (name, round) => {
      if (name === 'first') made = makeThreads(`round-${round}`, requests, round, 0)
      return postRound(bench, sluice, made, CALLERS)
    })
    const ratio = medianOf(measured, 'again').rate / medianOf(measured, 'first').rate
    return {
      measured,
      figures: [],
      floors: [atLeast('rate of reposts, against first posts', ratio, 1)],
    }
  },
}
