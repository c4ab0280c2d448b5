// Measures this code beside another checkout of it, in alternating rounds of one run, so that a
// change that costs speed is seen.
import type { Bench } from '../bench.ts'
import { type Sluice, startSluice } from '../contenders/start-sluice.ts'
import { medianRound } from '../measure/round.ts'
import { median } from '../percentiles.ts'
import { importBodies, postImports } from '../post-import.ts'
import { type MadeThread, makeThreads } from '../threads.ts'
import { interleave } from './interleave.ts'
import { postRound, warmUp } from './post-round.ts'
import { atLeast, type Scenario } from './scenario.ts'

/** This code is `after`, the other checkout is `before`. */
type Side = 'before' | 'after'

/** A load that both checkouts get. */
interface Load {
  name: string
  title: string
  /** The least rate, against the other checkout's. */
  floor: number
  threads(bench: Bench, round: number): MadeThread[]
  callers: number
  run?: (sluice: Sluice, threads: readonly MadeThread[]) => ReturnType<Sluice['run']>
  /** Posts all threads of a round before it is measured. */
  postedBefore?: boolean
}

const LOADS: readonly Load[] = [
  {
    name: 'callers-64',
    title: '64 callers',
    floor: 0.95,
    callers: 64,
    threads: ({ scale }, round) => makeThreads(`many-${round}`, scale.requests, round),
  },
  {
    name: 'callers-1',
    title: 'one caller',
    floor: 0.95,
    callers: 1,
    threads: ({ scale }, round) => makeThreads(`one-${round}`, scale.aloneRequests, round + 50),
  },
  {
    name: 'import',
    title: 'an NDJSON import',
    floor: 0.95,
    callers: 1,
    threads: ({ scale }, round) =>
      makeThreads(`import-${round}`, scale.importThreads, round + 100, 0),
    run: runImport,
  },
  {
    name: 'reposts',
    title: 'reposts that change nothing, 64 callers',
    floor: 0.95,
    callers: 64,
    threads: ({ scale }, round) => makeThreads(`repost-${round}`, scale.requests, round + 200, 0),
    postedBefore: true,
  },
  {
    name: 'appends',
    title: 'appends to 500 sources, 64 callers',
    floor: 0.9,
    callers: 64,
    threads: ({ scale }, round) => appends(round, Math.ceil(scale.requests / 2)),
  },
]

/**
 * The loads as scenarios, each for this code and the checkout in this folder, which must be
 * installed.
 */
export function againstCheckout(root: string): readonly Scenario[] {
  return LOADS.map((load) => ({
    name: `against-${load.name}`,
    title: `This code against ${root}: ${load.title}`,
    long: false,
    run: (bench) => measureLoad(bench, root, load),
  }))
}

/**
 * A server may serve the database that it created first faster, so half of the rounds run with the
 * other order. Each round is compared with the other checkout's beside it.
 */
async function measureLoad(bench: Bench, root: string, load: Load) {
  const rounds = Math.ceil(bench.scale.rounds / 2)
  const halves = [await measureHalf(bench, root, load, ['before', 'after'], rounds)]
  if (bench.scale.rounds > 1)
    halves.push(await measureHalf(bench, root, load, ['after', 'before'], rounds))
  const measured = (['before', 'after'] as const).map((name) => {
    const all = halves.flat().flatMap((one) => (one.name === name ? one.rounds : []))
    return { name, rounds: all, median: medianRound(all) }
  })
  const [before = [], after = []] = measured.map(({ rounds }) => rounds)
  const ratios = after.map(({ rate }, at) => rate / (before[at]?.rate ?? Number.NaN))
  return {
    measured,
    figures: [],
    floors: [atLeast('rate, against the other checkout', median(ratios), load.floor)],
  }
}

async function measureHalf(
  bench: Bench,
  root: string,
  load: Load,
  order: readonly Side[],
  rounds: number,
) {
  await using started = new AsyncDisposableStack()
  const contenders = new Map<Side, Sluice>()
  for (const side of order) {
    const options = side === 'before' ? { root } : {}
    // The second half has its own databases, because those of the first half have its threads.
    const name = `${side}-${load.name}-${order[0]}-first`
    contenders.set(side, started.use(await startSluice(bench, { name, ...options })))
  }
  for (const sluice of [...contenders.values(), ...contenders.values()])
    await warmUp(bench, sluice, 64)
  return await interleave(order, rounds, async (side, round) => {
    const sluice = contenders.get(side)
    if (sluice === undefined) throw new Error(`${side} was not started`)
    const threads = load.threads(bench, round)
    if (load.postedBefore) await sluice.run(threads, load.callers)
    const run = () => load.run?.(sluice, threads) ?? sluice.run(threads, load.callers)
    return postRound(bench, { processes: sluice.processes, run }, threads, load.callers)
  })
}

/** Posts threads as imports. The times are times of whole imports. */
async function runImport({ urls: [url = ''], key }: Sluice, threads: readonly MadeThread[]) {
  const bodies = importBodies(threads)
  const began = performance.now()
  await postImports(url, key, bodies)
  const took = performance.now() - began
  return {
    threads: threads.length,
    rate: (threads.length / took) * 1000,
    p50: took,
    p99: took,
    failed: 0,
  }
}

const GROWING_SOURCES = 500

function appends(round: number, count: number): MadeThread[] {
  return Array.from({ length: count }, (_, at) => {
    const text = `Message ${at} of a channel that never sleeps, about as long as such messages are.`
    const quotes = [{ externalId: `${round}-${at}`, text, speaker: `user-${at % 20}` }]
    const externalId = `channel-${at % GROWING_SOURCES}`
    return {
      body: Buffer.from(
        JSON.stringify({ title: 'A channel', externalId, service: 'slack', quotes }),
      ),
      quotes: 1,
    }
  })
}
