import { setTimeout as pause } from 'node:timers/promises'
import { type Sluice, startSluice } from '../contenders/start-sluice.ts'
import { usageOf } from '../measure/usage-of.ts'
import { openLoop, runOf } from '../open-loop.ts'
import { median } from '../percentiles.ts'
import { makeThreads, renamed } from '../threads.ts'
import { warmUp } from './post-round.ts'
import { atMost, type Floor, type Scenario } from './scenario.ts'

const CALLERS = 64
/** The share of its own maximum. */
const SHARE = 0.7
/**
 * The garbage collector moves resident memory this much; a leak at this rate would show as far
 * more.
 */
const FLAT = 1.15
const TEMPLATE = 'enduring-00'

/** Minutes at a high rate: without errors, growing latency or growing memory. */
export const endurance: Scenario = {
  name: 'endurance',
  title: 'Open loop at 70 % of its own maximum',
  long: true,
  async run(bench) {
    const { scale } = bench
    await using sluice = await startSluice(bench)
    await warmUp(bench, sluice, CALLERS)
    const maximum = await maximumOf(sluice, scale.rounds, scale.requests)
    const rate = SHARE * maximum
    const ending = AbortSignal.timeout(scale.enduranceSeconds * 1000)
    const memory = watchMemory(sluice, ending)
    const { urls, key } = sluice
    const threads = renamed(makeThreads(TEMPLATE, scale.requests, 3_000), TEMPLATE)
    const samples = await openLoop({ urls, key, threads, rate, signal: ending })
    const { p50, p99, failed } = runOf(samples)
    const figures = [
      { what: 'its own maximum', value: maximum, unit: 'threads/s' },
      { what: 'the fixed rate', value: rate, unit: 'threads/s' },
      { what: 'requests', value: samples.length, unit: '' },
      { what: 'p50', value: p50, unit: 'ms' },
      { what: 'p99', value: p99, unit: 'ms' },
    ]
    const calm = [atMost('errors', failed, 0), atMost('p99, against p50', p99 / p50, 5)]
    return { measured: [], figures, floors: [...calm, ...flatness(await memory)] }
  },
}

async function maximumOf(sluice: Sluice, rounds: number, requests: number): Promise<number> {
  const rates: number[] = []
  for (let round = 0; round < rounds; round++) {
    rates.push((await sluice.run(makeThreads(`maximum-${round}`, requests, round), CALLERS)).rate)
  }
  return median(rates)
}

/** Resident bytes at each second, by process. */
async function watchMemory(
  sluice: Sluice,
  ending: AbortSignal,
): Promise<ReadonlyMap<string, number[]>> {
  const readings = new Map<string, number[]>(sluice.processes.map(({ name }) => [name, []]))
  while (!ending.aborted) {
    for (const { name, pid } of sluice.processes)
      readings.get(name)?.push((await usageOf(pid))?.rssBytes ?? 0)
    await pause(1_000, undefined, { signal: ending }).catch(() => {})
  }
  return readings
}

/** Compares the last third with the first. */
function flatness(memory: ReadonlyMap<string, number[]>): Floor[] {
  return Array.from(memory, ([name, readings]) => {
    const third = Math.ceil(readings.length / 3)
    const growth = median(readings.slice(-third)) / median(readings.slice(0, third))
    return atMost(`memory of the ${name}, last third against the first`, growth, FLAT)
  })
}
