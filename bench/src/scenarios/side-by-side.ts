import type { Bench } from '../bench.ts'
import type { Contender } from '../contenders/contender.ts'
import { openRawInserts } from '../contenders/raw-inserts.ts'
import { startPeer } from '../contenders/start-peer.ts'
import { AS_START, startSluice } from '../contenders/start-sluice.ts'
import type { Round } from '../measure/round.ts'
import type { KindOfServer } from '../report/describe-surroundings.ts'
import { makeThreads } from '../threads.ts'
import { interleave, medianOf } from './interleave.ts'
import { postRound, warmUp } from './post-round.ts'
import { atLeast, atMost, type Floor, type Measured, type Scenario } from './scenario.ts'

/** Sluice and all peers in a closed loop of 64 callers: the load of a busy service. */
export const callers64 = closedLoopOf(64, (measured, server) => {
  // Pauses of the emulator in memory decide the p99 of all contenders, so their CPU time is
  // compared.
  if (server === 'emulator in memory')
    return [
      atLeast('rate, against textbook', ratio(measured, 'rate', 'textbook'), 2),
      atMost('CPU, against textbook', ratio(measured, 'cpu', 'textbook'), 0.5),
      atMost('CPU, against bulk-write', ratio(measured, 'cpu', 'bulk-write'), 1.5),
    ]
  return [
    atLeast(
      'rate of sluice-start, against textbook',
      ratio(measured, 'rate', 'textbook', AS_START.name),
      5,
    ),
    atLeast(
      'rate of sluice-start, against bulk-write',
      ratio(measured, 'rate', 'bulk-write', AS_START.name),
      4,
    ),
    atMost(
      'p99 of sluice-start, against textbook',
      ratio(measured, 'p99', 'textbook', AS_START.name),
      0.25,
    ),
  ]
})

/** The same with four times as many callers. */
export const callers256 = closedLoopOf(256, (measured) => [
  atLeast('rate, against textbook', ratio(measured, 'rate', 'textbook'), 2),
])

/** One caller: it pays for the queue and gains nothing from batches. */
export const callers1 = closedLoopOf(1, (measured) => [
  atMost('p50, against bulk-write', ratio(measured, 'p50', 'bulk-write'), 2.2),
])

function closedLoopOf(
  callers: number,
  floorsOf: (measured: Measured[], server: KindOfServer) => Floor[],
): Scenario {
  return {
    name: `callers-${callers}`,
    title:
      callers === 1 ? 'One caller' : `${callers} callers, each posting one thread after the other`,
    long: false,
    async run(bench) {
      await using started = new AsyncDisposableStack()
      const contenders = await startAll(bench, started)
      for (const contender of contenders.values()) await warmUp(bench, contender, callers)
      const { scale } = bench
      const measured = await interleave(
        [...contenders.keys()],
        scale.rounds,
        async (name, round) => {
          const contender = contenders.get(name)
          if (contender === undefined) throw new Error(`${name} was not started`)
          const threads = makeThreads(
            `round-${round}`,
            callers === 1 ? scale.aloneRequests : scale.requests,
            round,
          )
          return postRound(bench, contender, threads, callers)
        },
      )
      return { measured, figures: [], floors: floorsOf(measured, bench.server) }
    },
  }
}

async function startAll(
  bench: Bench,
  started: AsyncDisposableStack,
): Promise<ReadonlyMap<string, Contender>> {
  const contenders = new Map<string, Contender>()
  const add = (contender: Contender) => contenders.set(contender.name, started.use(contender))
  add(await startSluice(bench))
  add(await startSluice(bench, AS_START))
  for (const name of ['textbook', 'upserts', 'bulk-write'] as const)
    add(await startPeer(bench, name))
  add(await openRawInserts(bench))
  return contenders
}

/** A figure of Sluice, against a peer's. */
function ratio(
  measured: readonly Measured[],
  figure: 'rate' | 'p50' | 'p99' | 'cpu',
  peer: string,
  sluice = 'sluice',
): number {
  const of = (name: string) => {
    const median = medianOf(measured, name)
    return figure === 'cpu' ? serviceCpuUs(median) : median[figure]
  }
  return of(sluice) / of(peer)
}

/** CPU time of a thread in all processes but the load generator. */
function serviceCpuUs({ cpuUs: { load: _, ...services } }: Round): number {
  return Object.values(services).reduce((sum, us) => sum + us, 0)
}
