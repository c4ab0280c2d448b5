import { setTimeout as pause } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { type Sluice, startSluice } from '../contenders/start-sluice.ts'
import { metricsOf } from '../measure/metrics-of.ts'
import { openLoop, type Sample } from '../open-loop.ts'
import { percentiles } from '../percentiles.ts'
import { createPoster } from '../poster.ts'
import { makeLongThread, makeThreads, renamed } from '../threads.ts'
import { warmUp } from './post-round.ts'
import { atMost, type Scenario } from './scenario.ts'

const CALLERS = 64
const CHARACTERS = 200
/** Others' posts a second; low enough that nothing waits but for the long thread. */
const OTHERS_RATE = 100
/** Before the first long thread, and between two, in ms. */
const BREATH_MS = 1_500
const LONG_THREADS = 5
const TEMPLATE = 'template-01'

interface Posted {
  from: number
  until: number
  status: number
  stallMs: number
}

/** A very long thread while others post: it must not hold them up. */
export const longThread: Scenario = {
  name: 'long-thread',
  title: 'A thread of 10,000 quotes of 200 characters while others post',
  long: true,
  async run(bench) {
    await using sluice = await startSluice(bench)
    await warmUp(bench, sluice, CALLERS)
    const posted: Posted[] = []
    const samples = await whileOthersPost(bench, sluice, async (worker) => {
      for (let at = 0; at <= LONG_THREADS; at++) {
        await pause(BREATH_MS)
        const one = await postLong(sluice, worker, `long-${at}`, bench.scale.longThread)
        // The first one meets code that is not compiled yet.
        if (at > 0) posted.push(one)
      }
    })
    return judge(posted, samples)
  },
}

/** Posts at a low fixed rate for as long as `act` takes. */
async function whileOthersPost(bench: Bench, sluice: Sluice, act: (workerAdmin: string) => Promise<void>): Promise<Sample[]> {
  const ending = new AbortController()
  const threads = renamed(makeThreads(TEMPLATE, bench.scale.requests, 4_000), TEMPLATE)
  const { urls, key, workerAdmins } = sluice
  const posting = openLoop({ urls, key, threads, rate: OTHERS_RATE, signal: ending.signal })
  try {
    await act(workerAdmins[0] ?? '')
  } finally {
    ending.abort()
  }
  return posting
}

async function postLong({ urls, key, apiAdmins }: Sluice, worker: string, name: string, quotes: number): Promise<Posted> {
  const poster = createPoster(urls, key, 1)
  const { body } = makeLongThread(name, quotes, CHARACTERS)
  const admins = [...apiAdmins, worker]
  await Promise.all(admins.map(metricsOf))
  const from = performance.now()
  const status = await poster.post(body)
  const until = performance.now()
  const metrics = await Promise.all(admins.map(metricsOf))
  await poster.close()
  return { from, until, status, stallMs: Math.max(...metrics.map(({ longestStallMs }) => longestStallMs)) }
}

function judge(posted: readonly Posted[], samples: readonly Sample[]) {
  const during = samples.filter(({ due, took }) => posted.some(({ from, until }) => due < until && due + took > from))
  const [first] = posted
  const apart = samples.filter((sample) => !during.includes(sample) && sample.due > (first?.from ?? 0) - BREATH_MS)
  const [busy, calm] = [during, apart].map((some) => percentiles(some.map(({ took }) => took)))
  const answered = Math.max(...posted.map(({ from, until, status }) => (status === 200 ? until - from : Number.POSITIVE_INFINITY)))
  const others = { busy: busy?.p99 ?? 0, calm: calm?.p99 ?? 0 }
  return {
    measured: [],
    figures: [
      { what: "others' p99 while no long thread is there", value: others.calm, unit: 'ms' },
      { what: "others' p99 during one", value: others.busy, unit: 'ms' },
      { what: 'errors of others', value: samples.filter(({ failed }) => failed).length, unit: '' },
    ],
    floors: [
      atMost('slowest answer, in ms', answered, 3_000),
      atMost('longest event-loop stall in API or worker, in ms', Math.max(...posted.map(({ stallMs }) => stallMs)), 200),
      atMost("others' p99 during it, against without", others.busy / others.calm, 2),
    ],
  }
}
