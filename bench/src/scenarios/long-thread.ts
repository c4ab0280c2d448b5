import { setTimeout as pause } from 'node:timers/promises'
import { type Sluice, startSluice } from '../contenders/start-sluice.ts'
import { metricsOf } from '../measure/metrics-of.ts'
import type { Sample } from '../open-loop.ts'
import { percentiles } from '../percentiles.ts'
import { createPoster } from '../poster.ts'
import { makeLongThread } from '../threads.ts'
import { warmUp } from './post-round.ts'
import { atMost, type Scenario } from './scenario.ts'
import { whileOthersPost } from './while-others-post.ts'

const CALLERS = 64
const CHARACTERS = 200
/** The pause before each long thread, in ms. */
const BREATH_MS = 1_500
const LONG_THREADS = 5

interface Posted {
  from: number
  until: number
  status: number
  stallMs: number
}

/** A very long thread while others post: it must not delay them. */
export const longThread: Scenario = {
  name: 'long-thread',
  title: 'A thread of 10,000 quotes of 200 characters while others post',
  long: true,
  async run(bench) {
    await using sluice = await startSluice(bench)
    await warmUp(bench, sluice, CALLERS)
    const posted: Posted[] = []
    const [worker = ''] = sluice.workerAdmins
    const samples = await whileOthersPost(bench, sluice, 'others-00', async () => {
      for (let at = 0; at <= LONG_THREADS; at++) {
        await pause(BREATH_MS)
        const one = await postLong(sluice, worker, `long-${at}`, bench.scale.longThread)
        // The first one runs code that is not compiled yet.
        if (at > 0) posted.push(one)
      }
    })
    return judge(posted, samples)
  },
}

async function postLong(
  { urls, key, apiAdmins }: Sluice,
  worker: string,
  name: string,
  quotes: number,
): Promise<Posted> {
  const poster = createPoster(urls, key, 1)
  const { body } = makeLongThread(name, quotes, CHARACTERS)
  const admins = [...apiAdmins, worker]
  await Promise.all(admins.map(metricsOf))
  const from = performance.now()
  const status = await poster.post(body)
  const until = performance.now()
  const metrics = await Promise.all(admins.map(metricsOf))
  await poster.close()
  return {
    from,
    until,
    status,
    stallMs: Math.max(...metrics.map(({ longestStallMs }) => longestStallMs)),
  }
}

function judge(posted: readonly Posted[], samples: readonly Sample[]) {
  const during = samples.filter(({ due, took }) =>
    posted.some(({ from, until }) => due < until && due + took > from),
  )
  const [first] = posted
  const apart = samples.filter(
    (sample) => !during.includes(sample) && sample.due > (first?.from ?? 0) - BREATH_MS,
  )
  const [busy, calm] = [during, apart].map((some) => percentiles(some.map(({ took }) => took)))
  const answered = Math.max(
    ...posted.map(({ from, until, status }) =>
      status === 200 ? until - from : Number.POSITIVE_INFINITY,
    ),
  )
  const others = { busy: busy?.p99 ?? 0, calm: calm?.p99 ?? 0 }
  return {
    measured: [],
    figures: [
      { what: "others' p99 without a long thread", value: others.calm, unit: 'ms' },
      { what: "others' p99 during one", value: others.busy, unit: 'ms' },
      { what: 'errors of others', value: samples.filter(({ failed }) => failed).length, unit: '' },
    ],
    floors: [
      atMost('slowest answer, in ms', answered, 3_000),
      atMost(
        'longest event-loop stall in API or worker, in ms',
        Math.max(...posted.map(({ stallMs }) => stallMs)),
        200,
      ),
      atMost("others' p99 during one, against without", others.busy / others.calm, 2),
    ],
  }
}
