import type { Bench } from '../bench.ts'
import type { Contender } from '../contenders/contender.ts'
import { openRawInserts } from '../contenders/raw-inserts.ts'
import { startPeer } from '../contenders/start-peer.ts'
import { startSluice } from '../contenders/start-sluice.ts'
import { makeThreads } from '../threads.ts'
import { interleave, medianOf } from './interleave.ts'
import { postRound, warmUp } from './post-round.ts'
import { atLeast, atMost, type Floor, type Measured, type Scenario } from './scenario.ts'

/** Sluice and all peers in a closed loop of 64 callers: the load of a busy service. */
export const callers64 = closedLoopOf(64, (measured) => [
  atLeast("rate, against the textbook pipeline's", ratio(measured, 'rate', 'textbook'), 2.5),
  atMost("p99, against the textbook pipeline's", ratio(measured, 'p99', 'textbook'), 0.5),
  atLeast('rate, against no queue with one bulkWrite a thread', ratio(measured, 'rate', 'bulk-write'), 1.25),
])

/** The same with four times as many callers. */
export const callers256 = closedLoopOf(256, (measured) => [
  atLeast("rate, against the textbook pipeline's", ratio(measured, 'rate', 'textbook'), 3),
  atLeast('rate, against no queue with one bulkWrite a thread', ratio(measured, 'rate', 'bulk-write'), 1.5),
])

/** One caller: it pays for the queue and gains nothing from batches. */
export const callers1 = closedLoopOf(1, (measured) => [
  atMost('p50, against no queue with one bulkWrite a thread', ratio(measured, 'p50', 'bulk-write'), 2.2),
])

function closedLoopOf(callers: number, floorsOf: (measured: Measured[]) => Floor[]): Scenario {
  return {
    name: `callers-${callers}`,
    title: callers === 1 ? 'One caller' : `${callers} callers, each posting one thread after the other`,
    long: false,
    async run(bench) {
      await using started = new AsyncDisposableStack()
      const contenders = await startAll(bench, started)
      for (const contender of contenders.values()) await warmUp(bench, contender, callers)
      const { scale } = bench
      const measured = await interleave([...contenders.keys()], scale.rounds, async (name, round) => {
        const contender = contenders.get(name)
        if (contender === undefined) throw new Error(`${name} was not started`)
        const threads = makeThreads(`round-${round}`, callers === 1 ? scale.aloneRequests : scale.requests, round)
        return postRound(bench, contender, threads, callers)
      })
      return { measured, figures: [], floors: floorsOf(measured) }
    },
  }
}

async function startAll(bench: Bench, started: AsyncDisposableStack): Promise<ReadonlyMap<string, Contender>> {
  const contenders = new Map<string, Contender>()
  const add = (contender: Contender) => contenders.set(contender.name, started.use(contender))
  add(await startSluice(bench))
  for (const name of ['textbook', 'upserts', 'bulk-write'] as const) add(await startPeer(bench, name))
  add(openRawInserts(bench))
  return contenders
}

function ratio(measured: readonly Measured[], figure: 'rate' | 'p50' | 'p99', peer: string): number {
  return medianOf(measured, 'sluice')[figure] / medianOf(measured, peer)[figure]
}
