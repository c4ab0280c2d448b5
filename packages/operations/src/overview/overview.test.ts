import assert from 'node:assert/strict'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import { connectRetrying } from '@sluice/process/redis'
import { newJobId, queueKeys } from '@sluice/queue'
import { createJobAdder } from '@sluice/queue/test-support'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { beforeEach, type TestContext, test, vi } from 'vitest'
import { type Reading, startHeartbeats } from './heartbeats.ts'
import { createReadHistory, peaksOf } from './history.ts'
import { createReadOverview } from './overview.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  return () => void vi.useRealTimers()
})

async function open(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const keys = queueKeys(testQueueName())
  /** Resolves when Redis has confirmed what was sent so far. */
  async function confirmed(): Promise<void> {
    await setImmediate()
    await redis.ping()
    await setImmediate()
  }
  return {
    redis,
    keys,
    overview: createReadOverview(redis, keys),
    /** The last point of the last hour, and the one before: a minute may end meanwhile. */
    async history() {
      const points = await createReadHistory(redis, keys)('hour')
      return points.filter(({ accepted, failed }) => accepted > 0 || failed > 0)
    },
    /** Starts a process, whose first heartbeat has been confirmed. */
    async start(kind: 'api' | 'worker', read: () => Reading) {
      const stop = startHeartbeats(redis, keys, { kind, version: '1.2.3' }, async () => read())
      t.onTestFinished(stop)
      await confirmed()
      return stop
    },
    async nextHeartbeats(): Promise<void> {
      await vi.advanceTimersByTimeAsync(1_000)
      await confirmed()
    },
  }
}

test('each heartbeat adds what was counted since the last one, over all processes, and keeps the peaks', async (t) => {
  const { start, nextHeartbeats, history } = await open(t)
  const reading = { totals: { accepted: 3, failed: 1 }, peaks: { 'waiting:bulk': 7, 'oldest:bulk': 0.5 } }
  await start('api', () => reading)
  await start('worker', () => ({ totals: { 'stored:created': 2 } }))
  reading.totals = { accepted: 10, failed: 1 }
  reading.peaks = { 'waiting:bulk': 5, 'oldest:bulk': 1.5 }
  await nextHeartbeats()
  await nextHeartbeats()
  const points = await history()
  const sum = (of: (point: (typeof points)[number]) => number) => points.reduce((total, point) => total + of(point), 0)
  assert.deepEqual([sum(({ accepted }) => accepted), sum(({ failed }) => failed)], [10, 1])
  assert.equal(
    sum(({ stored }) => stored.created),
    2,
  )
  assert.equal(Math.max(...points.map(({ waiting }) => waiting.bulk)), 7)
  assert.equal(Math.max(...points.map(({ oldestSeconds }) => oldestSeconds.bulk)), 1.5)
})

test('a process that stops sends what it counted last and is listed no more, and some minutes are read as one point', async (t) => {
  const { start, redis, keys, overview } = await open(t)
  const reading = { totals: { accepted: 3 } }
  const stop = await start('api', () => reading)
  reading.totals = { accepted: 4 }
  assert.equal((await overview()).processes.length, 1)
  await stop()
  assert.deepEqual((await overview()).processes, [])
  const read = createReadHistory(redis, keys)
  const spans = [5, 60, 5, 60]
  // At the same time, as for the answer of one request.
  const points = (await Promise.all(spans.map(read))).flat()
  assert.deepEqual(
    points.map(({ minutes, accepted }) => [minutes, accepted]),
    spans.map((minutes) => [minutes, 4]),
  )
})

test('a process that stops while a heartbeat is under way is listed no more', async (t) => {
  const { redis, keys, overview } = await open(t)
  const underWay = Promise.withResolvers<Reading>()
  const readings = [underWay.promise]
  const read = async () => (await readings.shift()) ?? {}
  const stopped = startHeartbeats(redis, keys, { kind: 'api', version: '1.2.3' }, read)()
  underWay.resolve({})
  await stopped
  assert.deepEqual((await overview()).processes, [])
})

test('quantiles are those of the histograms that the workers counted', async (t) => {
  const { start, history } = await open(t)
  const queue = { 'queue:0.1': 0, 'queue:0.5': 100, 'queue:1': 100, 'queue:+Inf': 100 }
  await start('worker', () => ({
    totals: { accepted: 1, ...queue, 'store:0.01': 90, 'store:0.1': 100, 'store:+Inf': 100 },
  }))
  const [point] = await history()
  assert.deepEqual(point?.queueTime, { p50: 0.1 + 0.4 * 0.5, p99: 0.1 + 0.4 * 0.99 })
  assert.equal(point?.storeTime?.p50, 0.01 * (50 / 90))
})

test('the day has points of a quarter of an hour, and minutes that are over are read once', async (t) => {
  const { redis, keys } = await open(t)
  const now = Math.floor(Number((await redis.time())[0]) / 60)
  for (const minute of [now - 2, now - 1_000, now - 1_001])
    await redis.hset(`${keys.base}minute:${minute}`, { accepted: 5, 'refused:acme': 2, refused: 2 })
  const read = createReadHistory(redis, keys)
  const day = await read('day')
  assert(day.length >= 95 && day.length <= 97, `${day.length}`)
  assert.equal(
    day.reduce((sum, { accepted }) => sum + accepted, 0),
    15,
  )
  assert.deepEqual(day.find(({ refused }) => refused > 0)?.refusedByTenant.acme !== undefined, true)
  await redis.del(`${keys.base}minute:${now - 1_000}`)
  const again = await read('day')
  assert.equal(
    again.reduce((sum, { accepted }) => sum + accepted, 0),
    15,
  )
})

test('of the refusals by tenant, those of the ten with the most are sent', async (t) => {
  const { start, history } = await open(t)
  const manyTotals = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`refused:tenant-${at}`, at]))
  await start('api', () => ({ totals: { accepted: 1 }, manyTotals }))
  const [point] = await history()
  const expected = Array.from({ length: 10 }, (_, at) => [`tenant-${29 - at}`, 29 - at])
  assert.deepEqual(Object.entries(point?.refusedByTenant ?? {}), expected)
})

test('the overview has the queue, the largest tenants, the processes and how long MongoDB has been away', async (t) => {
  const { start, redis, keys, overview } = await open(t)
  const add = createJobAdder(redis, keys)
  const source = { service: 'slack', externalId: 'a', title: 'T' } as const
  for (const [tenant, threads] of [
    ['small', 1],
    ['large', 3],
  ] as const) {
    const all = Array.from({ length: threads }, () => ({ source, quotes: [] }))
    await add({ id: newJobId(), lane: 'bulk', job: { tenant, requestId: 'r', retained: false, threads: all } })
  }
  await start('worker', () => ({ storeAwayMs: 40_000 }))
  await start('api', () => ({}))
  const { tenants, processes, redis: memory, storeAwayMs = 0, queued } = await overview()
  assert.deepEqual(tenants, [
    { tenant: 'large', threads: 3 },
    { tenant: 'small', threads: 1 },
  ])
  assert.deepEqual(
    processes.map(({ kind, version, host, pid }) => [kind, version, host, pid]),
    ['api', 'worker'].map((kind) => [kind, '1.2.3', hostname(), process.pid]),
  )
  for (const { seenMsAgo, memoryBytes } of processes) assert(seenMsAgo >= 0 && seenMsAgo < 60_000 && memoryBytes > 1e6)
  assert(storeAwayMs >= 40_000 && storeAwayMs < 50_000)
  assert(memory.usedBytes > 0)
  assert.deepEqual(peaksOf(queued)['waiting:bulk'], 4)
  const [id = ''] = processes.map((one) => one.id)
  await redis.zadd(`${keys.base}processes`, Date.now() + 5_000, id)
  assert.deepEqual(
    (await overview()).processes.map((one) => one.id === id && one.seenMsAgo),
    [0, false],
  )
})

test('a process without a sign of life for ten minutes is forgotten, and the hash of a minute stays small', async (t) => {
  const { start, nextHeartbeats, redis, keys, overview } = await open(t)
  const long = 'x'.repeat(60)
  let beats = 0
  const stop = await start('api', () => {
    beats += 1
    const entries = Array.from({ length: 50 }, (_, at) => [`refused:${long}${beats}-${at}`, beats * 50 + at])
    return { manyTotals: Object.fromEntries(entries) }
  })
  for (let at = 0; at < 11; at++) await nextHeartbeats()
  const minutes = await redis.keys(`${keys.base.replace('{', '\\{')}minute:*`)
  for (const minute of minutes) {
    const bytes = Number(await redis.call('MEMORY', 'USAGE', minute, 'SAMPLES', '0'))
    assert(bytes < 10_000, `${bytes}`)
    assert((await redis.pttl(minute)) > 24 * 3_600_000)
  }
  stop()
  const [{ id = '' } = {}] = (await overview()).processes
  await redis.zadd(`${keys.base}processes`, Date.now() - 601_000, id)
  await start('worker', () => ({}))
  assert.deepEqual(
    (await overview()).processes.map(({ kind }) => kind),
    ['worker'],
  )
})

test('of more than 500 processes the one that was silent for longest is forgotten', async (t) => {
  const { start, redis, keys, overview } = await open(t)
  const [seconds] = await redis.time()
  const now = Number(seconds) * 1000
  const names = Array.from({ length: 500 }, (_, at) => `process-${at}`)
  await redis.zadd(`${keys.base}processes`, ...names.flatMap((name, at) => [now - at, name]))
  const about = JSON.stringify({ kind: 'worker', startedAt: new Date(now).toISOString() })
  await redis.hset(`${keys.base}processes:about`, Object.fromEntries(names.map((name) => [name, about])))
  await start('api', () => ({}))
  const ids = (await overview()).processes.map(({ id }) => id)
  assert.deepEqual([ids.length, ids.includes('process-498'), ids.includes('process-499')], [500, true, false])
})
