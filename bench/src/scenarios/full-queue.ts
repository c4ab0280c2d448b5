import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Bench } from '../bench.ts'
import { closedLoop } from '../closed-loop.ts'
import { type Sluice, startSluice } from '../contenders/start-sluice.ts'
import { metricsOf } from '../measure/metrics-of.ts'
import { median } from '../percentiles.ts'
import { makeThreads, renamed, takeSome } from '../threads.ts'
import { warmUp } from './post-round.ts'
import { atLeast, type Scenario } from './scenario.ts'

const CALLERS = 64
/** Adding is timed in slices; the median counts. */
const SLICES = 10
const TEMPLATE = 'full-queue-00'
const POLL_MS = 100

/** A backlog. It must not slow down enqueueing or the workers. */
export const fullQueue: Scenario = {
  name: 'full-queue',
  title: 'A queue of 200,000 waiting jobs against an empty one',
  long: true,
  async run(bench) {
    await using sluice = await startSluice(bench, { workers: 0 })
    const worker = await sluice.startWorker()
    await warmUp(bench, sluice, CALLERS)
    await worker.stop()
    const { requests, waitingJobs } = bench.scale
    const add = adderOf(sluice, requests)
    await add(requests)
    const emptyAdding = await add(requests)
    const emptyWorking = await work(sluice, 2 * requests)
    const before = await usedMemory(bench)
    await add(waitingJobs - requests)
    const fullAdding = await add(requests)
    const bytes = ((await usedMemory(bench)) - before) / waitingJobs
    const fullWorking = await work(sluice, 2 * requests)
    const figures = [
      { what: 'adding to the empty queue', value: emptyAdding, unit: 'jobs/s' },
      { what: 'adding to the full queue', value: fullAdding, unit: 'jobs/s' },
      { what: 'working the empty queue', value: emptyWorking, unit: 'jobs/s' },
      { what: 'working the full queue', value: fullWorking, unit: 'jobs/s' },
      { what: 'waiting jobs', value: waitingJobs, unit: '' },
      { what: 'Redis memory a waiting job', value: bytes, unit: 'bytes' },
    ]
    const floors = [
      atLeast('rate of adding, against the empty queue', fullAdding / emptyAdding, 0.9),
      atLeast('rate of working, against the empty queue', fullWorking / emptyWorking, 0.9),
    ]
    return { measured: [], figures, floors }
  },
}

/** Adds jobs without waiting callers and returns the rate. Throws if one was refused. */
function adderOf({ urls, key }: Sluice, templates: number): (count: number) => Promise<number> {
  const endless = renamed(makeThreads(TEMPLATE, templates, 5_000), TEMPLATE)
  return async (count) => {
    const rates: number[] = []
    for (let slice = 0; slice < SLICES; slice++) {
      const threads = takeSome(endless, Math.ceil(count / SLICES))
      const { rate, failed } = await closedLoop(urls, key, threads, CALLERS, {
        prefer: 'respond-async',
        expected: 202,
      })
      if (failed > 0) throw new Error(`${failed} of ${threads.length} jobs were not accepted`)
      rates.push(rate)
    }
    return median(rates)
  }
}

/** The rate at which a fresh worker processes `count` jobs; the first third is its warm-up. */
async function work(sluice: Sluice, count: number): Promise<number> {
  const worker = await sluice.startWorker()
  const begun = await untilStored(worker.admin, count / 3)
  const ended = await untilStored(worker.admin, count)
  await worker.stop()
  return (ended.stored - begun.stored) / ((ended.at - begun.at) / 1000)
}

async function untilStored(admin: string, count: number): Promise<{ at: number; stored: number }> {
  for (;;) {
    const stored = (await metricsOf(admin)).sum('sluice_threads_stored_total')
    if (stored >= count) return { at: performance.now(), stored }
    await pause(POLL_MS)
  }
}

async function usedMemory({ redisUrl }: Bench): Promise<number> {
  const redis = new Redis(redisUrl)
  const info = await redis.info('memory')
  redis.disconnect()
  return Number(/^used_memory:(\d+)/m.exec(info)?.[1])
}
