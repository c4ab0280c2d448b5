import type { Bench } from '../bench.ts'
import type { HttpContender } from '../contenders/contender.ts'
import { startPeer } from '../contenders/start-peer.ts'
import { startSluice } from '../contenders/start-sluice.ts'
import { measureRound, type Round } from '../measure/round.ts'
import { openLoop as postAtRate, runOf } from '../open-loop.ts'
import { makeThreads } from '../threads.ts'
import { interleave } from './interleave.ts'
import { documentsPerThread, warmUp } from './post-round.ts'
import type { Scenario } from './scenario.ts'

const CALLERS = 64
/** The share of the slowest contender's maximum, so that no contender falls behind. */
const SHARE = 0.7

/** All contenders at one fixed rate: the latency for independent callers. */
export const openLoop: Scenario = {
  name: 'open-loop',
  title: 'The same fixed rate for all: 70 % of what the slowest can do',
  long: true,
  async run(bench) {
    await using started = new AsyncDisposableStack()
    const contenders: HttpContender[] = [started.use(await startSluice(bench))]
    for (const name of ['textbook', 'upserts', 'bulk-write'] as const)
      contenders.push(started.use(await startPeer(bench, name)))
    const rate = SHARE * (await slowestRate(bench, contenders))
    const byName = new Map(contenders.map((contender) => [contender.name, contender]))
    const measured = await interleave([...byName.keys()], bench.scale.rounds, (name, round) => {
      const contender = byName.get(name)
      if (contender === undefined) throw new Error(`${name} was not started`)
      return postRoundAtRate(bench, contender, rate, round)
    })
    return {
      measured,
      figures: [{ what: 'the fixed rate', value: rate, unit: 'threads/s' }],
      floors: [],
    }
  },
}

async function slowestRate(bench: Bench, contenders: readonly HttpContender[]): Promise<number> {
  const rates = []
  for (const contender of contenders) {
    await warmUp(bench, contender, CALLERS)
    const { rate } = await contender.run(
      makeThreads('maximum', bench.scale.requests, 2_000),
      CALLERS,
    )
    rates.push(rate)
  }
  return Math.min(...rates)
}

function postRoundAtRate(
  { scale, surroundings }: Bench,
  contender: HttpContender,
  rate: number,
  round: number,
): Promise<Round> {
  const threads = makeThreads(`round-${round}`, Math.ceil(rate * scale.openLoopSeconds), round)
  const { urls, key } = contender
  const signal = new AbortController().signal
  const post = async () => runOf(await postAtRate({ urls, key, threads, rate, signal }))
  return measureRound([...contender.processes, ...surroundings], documentsPerThread(threads), post)
}
