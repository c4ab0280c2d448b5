import assert from 'node:assert/strict'
import { requiredUrl } from '@sluice/test-support'
import { afterAll, beforeAll, test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { fateOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, type Posted, postThread, type Target } from '../support/post-thread.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { scale } from '../support/scale.ts'
import { startSluice } from '../support/start-sluice.ts'
import { openLoop } from './open-loop.ts'
import { type Sample, sampleLoad } from './sample-load.ts'

const OVERLOAD = 5
const CLOSED_LOOP_CALLERS = 32
/**
 * What docs/operate/keys.md has an operator reserve: 200 MiB and four times MAX_BODIES_BYTES. The
 * more of 100 KB arrive, the closer it comes.
 */
const MAX_API_MB = ((200 + 4 * 256) * 2 ** 20) / 1e6

let redis: PrivateServer
beforeAll(async () => {
  redis = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
})
afterAll(() => redis.end())

/** The queue is small, so that a short overload fills it. */
const small = {
  of: 'small threads',
  size: { quotes: 3, text: 'five words in this quote' },
  posts: 300,
  seconds: 2,
  maxThreads: 1_000,
  maxBytes: 32 * 2 ** 20,
}
const large = {
  of: 'threads of 100 KB',
  size: { quotes: 100, text: 'ten bytes '.repeat(100) },
  posts: 64,
  seconds: 6,
  maxThreads: 3_000,
  maxBytes: 80 * 2 ** 20,
}
type Load = typeof small

for (const load of scale([small], [small, large])) {
  const { of, size, posts, seconds } = load
  test(`at ${OVERLOAD} times the capacity with ${of}, every request is accepted or refused, the accepted are stored, and memory stays in bounds`, {
    timeout: seconds * 1000 + 180_000,
  }, async (t) => {
    const settings = {
      WAIT_SECONDS: '10',
      TENANT_SHARE: '1',
      MAX_QUEUE_THREADS: String(load.maxThreads),
      MAX_QUEUE_BYTES: String(load.maxBytes),
    }
    const sluice = await startSluice(t, { redisUrl: redis.url, settings })
    const view = openQueue(t, sluice.settings)
    const warm = await closedLoop(sluice, size, posts)
    const began = performance.now()
    warm.push(...(await closedLoop(sluice, size, posts)))
    const capacity = (posts / (performance.now() - began)) * 1000

    const overload = new AbortController()
    const sampling = sampleLoad(sluice, view, overload.signal)
    const rate = OVERLOAD * capacity
    let made = 0
    const next = () => ({
      thread: aThread(size),
      ...(made++ % 2 === 0 && { prefer: 'respond-async' }),
    })
    const posted = await openLoop({ ...sluice, rate, seconds, next })
    overload.abort()
    const samples = await sampling
    await t.annotate(
      `${capacity.toFixed(0)} threads/s by closed loop, then ${rate.toFixed(0)}/s: ${summary(posted)}`,
    )
    await t.annotate(samples.map(asText).join('\n'))

    const untold = posted.filter(
      ({ status }) => ![200, 202, 429, 503, 504].includes(Number(status)),
    )
    assert.deepEqual(
      untold.map(({ status, body }) => [status, body]),
      [],
    )
    for (const { status, headers } of posted)
      if (status === 503 || status === 429)
        assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
    assertBounded(samples, load)
    await view.drained(120_000)
    await assertStored(sluice.db, [...warm, ...posted])
  })
}

/** Callers that wait for each answer: as many requests as the service can keep up with. */
async function closedLoop(
  target: Target,
  size: Parameters<typeof aThread>[0],
  posts: number,
): Promise<Posted[]> {
  const posted: Posted[] = []
  let sent = 0
  async function call(): Promise<void> {
    while (sent++ < posts) posted.push(await postThread(target, aThread(size)))
  }
  await Promise.all(Array.from({ length: CLOSED_LOOP_CALLERS }, call))
  return posted
}

function assertBounded(samples: readonly Sample[], { maxThreads, maxBytes }: Load): void {
  const most = (of: (sample: Sample) => number) => Math.max(...samples.map(of))
  const growth = most(({ redis }) => redis) - (samples[0]?.redis ?? 0)
  assert(most(({ jobs }) => jobs) <= maxThreads, `${most(({ jobs }) => jobs)} jobs in the queue`)
  // Redis keeps a payload with its bookkeeping, and results beside it.
  assert(growth <= 64 + (3 * maxBytes) / 1e6, `Redis grew by ${growth} MB`)
  assert(most(({ api }) => api) <= MAX_API_MB, `the API took ${most(({ api }) => api)} MB`)
}

/**
 * The answers by status and code, with the 99th percentile of the accepted and of the refused, in
 * ms.
 */
function summary(posted: readonly Posted[]): string {
  const kinds = Map.groupBy(posted, ({ status, body }) => `${status} ${body.code ?? ''}`.trim())
  const counts = Array.from(kinds, ([kind, answers]) => `${answers.length} × ${kind}`)
  const fates = Map.groupBy(posted, fateOf)
  const times = Array.from(fates, ([fate, answers]) => `p99 ${fate} ${p99(answers)} ms`)
  return [`${posted.length} sent`, ...counts, ...times].join(', ')
}

function p99(answers: readonly Posted[]): number {
  const times = answers.map(({ ms }) => ms).sort((one, other) => one - other)
  return Math.round(times[Math.floor(times.length * 0.99)] ?? 0)
}

function asText({ seconds, redis, api, worker, jobs }: Sample): string {
  const [at, ...mb] = [seconds, redis, api, worker].map((value) => value.toFixed(1))
  return `${at} s: Redis ${mb[0]} MB, API ${mb[1]} MB, worker ${mb[2]} MB, ${jobs} jobs`
}
