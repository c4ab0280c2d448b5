import assert from 'node:assert/strict'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import { createDurations, type Durations } from '@sluice/boot/durations'
import { type ProcessReport, startHeartbeats } from '@sluice/boot/heartbeats'
import { perSecondOf } from '@sluice/contract'
import { connectRetrying } from '@sluice/process/redis'
import { LANES, newJobId, queueKeys } from '@sluice/queue'
import { createJobAdder } from '@sluice/queue/test-support'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { beforeEach, type TestContext, test, vi } from 'vitest'
import { createReadHistory, createReadOverview, createReadTenant, peaksOf } from './overview.ts'

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
      const spans = await createReadHistory(redis, keys)('1 h')
      return spans.flatMap(({ point }) =>
        point && (point.accepted > 0 || point.failed > 0) ? point : [],
      )
    },
    /** Starts a process, whose first heartbeat has been confirmed. */
    async start(kind: 'api' | 'worker', read: () => ProcessReport) {
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
  const reading = {
    totals: { accepted: 3, failed: 1 },
    peaks: { 'waiting:bulk': 7, 'oldest:bulk': 0.5 },
  }
  await start('api', () => reading)
  await start('worker', () => ({ totals: { 'stored:created': 2 } }))
  reading.totals = { accepted: 10, failed: 1 }
  reading.peaks = { 'waiting:bulk': 5, 'oldest:bulk': 1.5 }
  await nextHeartbeats()
  await nextHeartbeats()
  const points = await history()
  const sum = (of: (point: (typeof points)[number]) => number) =>
    points.reduce((total, point) => total + of(point), 0)
  assert.deepEqual([sum(({ accepted }) => accepted), sum(({ failed }) => failed)], [10, 1])
  assert.equal(
    sum(({ stored }) => stored.created),
    2,
  )
  assert.equal(Math.max(...points.map(({ waiting }) => waiting.bulk)), 7)
  assert.equal(Math.max(...points.map(({ oldestSeconds }) => oldestSeconds.bulk)), 1.5)
})

test('a heartbeat arrives although a name of a tenant, or a reason, was cut in the middle of a character', async (t) => {
  const { start, overview } = await open(t)
  await start('api', () => ({
    manyTotals: { 'refused:x\ud83d': 1 },
    unavailable: { ms: 1, reason: '\ude00' },
  }))
  assert.equal((await overview()).processes.length, 1)
})

test('a process reports what it counted since its start, and in the last minute', async (t) => {
  const { start, nextHeartbeats, overview } = await open(t)
  const reading = { totals: { accepted: 3, 'stored:created': 1, 'stored:unchanged': 2 } }
  let passed = 0
  const { now } = performance
  vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + passed)
  t.onTestFinished(() => void vi.restoreAllMocks())
  await start('worker', () => reading)
  const reported = async () => {
    const [{ counts, lastMinute } = {}] = (await overview()).processes
    return [counts, lastMinute]
  }
  assert.deepEqual(await reported(), [
    { accepted: 3, stored: 3 },
    { accepted: 3, stored: 3 },
  ])
  reading.totals.accepted = 5
  passed = 50_000
  await nextHeartbeats()
  assert.deepEqual(await reported(), [
    { accepted: 5, stored: 3 },
    { accepted: 5, stored: 3 },
  ])
  passed = 70_000
  await nextHeartbeats()
  assert.deepEqual(await reported(), [
    { accepted: 5, stored: 3 },
    { accepted: 2, stored: 0 },
  ])
})

test('what a tenant has in the load is read by lane', async (t) => {
  const { redis, keys } = await open(t)
  const readTenant = createReadTenant(redis, keys)
  const threads = ['a', 'b'].map((externalId) => ({
    source: { service: 'slack' as const, externalId, title: 'T' },
    quotes: [],
  }))
  for (const [lane, of] of [
    ['interactive', threads.slice(1)],
    ['bulk', threads],
  ] as const)
    await createJobAdder(
      redis,
      keys,
    )({
      id: newJobId(),
      lane,
      job: { tenant: 'acme', requestId: 'r', retained: false, threads: of },
    })
  const { bytes, ...counts } = await readTenant('acme')
  assert.deepEqual(counts, { threads: 3, interactive: 1, bulk: 2 })
  assert(bytes > 0)
  assert.deepEqual(await readTenant('other'), { threads: 0, bytes: 0, interactive: 0, bulk: 0 })
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
    points.map(({ point }) => [point?.minutes, point?.accepted]),
    spans.map((minutes) => [minutes, 4]),
  )
})

test('a process that stops while a heartbeat is under way is listed no more', async (t) => {
  const { redis, keys, overview } = await open(t)
  const underWay = Promise.withResolvers<ProcessReport>()
  const readings = [underWay.promise]
  const read = async () => (await readings.shift()) ?? {}
  const stopped = startHeartbeats(redis, keys, { kind: 'api', version: '1.2.3' }, read)()
  underWay.resolve({})
  await stopped
  assert.deepEqual((await overview()).processes, [])
})

/** A worker's reading of what was observed since the last one. */
function readingOf(observed: Durations): ProcessReport {
  const { longest, durations } = observed.take()
  return { totals: { accepted: 1 }, peaks: longest, durations }
}

test('durations of several heartbeats, processes and minutes add up, and those in the form before do not count', async (t) => {
  const { start, nextHeartbeats, redis, keys } = await open(t)
  const durations = [createDurations(), createDurations()]
  for (const one of durations) {
    for (let at = 0; at < 3; at++) one.observe('inQueue:bulk', 0.01)
    await start('worker', () => readingOf(one))
  }
  for (let at = 0; at < 8; at++) durations[0]?.observe('inQueue:bulk', 1)
  await nextHeartbeats()
  await nextHeartbeats()
  const before = `${keys.base}minute:${Math.floor(Number((await redis.time())[0]) / 60) - 2}`
  await redis.hset(before, {
    accepted: 1,
    'longest:inQueue:bulk': 100,
    'inQueue:0': 90,
    'queue:0.005': 90,
  })
  await redis.set(
    `${before}:durations`,
    JSON.stringify({ 'inQueue:bulk': [...Array(12).fill(0), 5, ...Array(45).fill(0), 1] }),
  )
  const [{ point } = {}] = await createReadHistory(redis, keys)(5)
  // Of twenty durations, eleven are 0.01 s, and the longest is 100 s.
  const { p50 = 0, p99 = 0 } = point?.queueTime ?? {}
  assert(Math.abs(p50 - 0.01) <= 0.001 && Math.abs(p99 - 100) <= 10, `${p50}, ${p99}`)
})

test('quantiles err by a tenth at most, by lane and of both parts, and never exceed the longest duration', async (t) => {
  for (const [least, most] of [
    [51, 53],
    [47, 47],
    [0.002, 0.9],
    [3_000, 80_000],
  ] as const) {
    const { start, history } = await open(t)
    const durations = createDurations()
    const all = Array.from({ length: 500 }, (_, at) => least + ((most - least) * at) / 499)
    for (const seconds of all)
      for (const timed of ['bulk', 'inStore:bulk'] as const) durations.observe(timed, seconds)
    await start('worker', () => readingOf(durations))
    const [{ totalTime, storeTime, queueTime } = {}] = await history()
    assert.deepEqual([queueTime, totalTime?.interactive], [undefined, undefined])
    const shares = { p50: 0.5, p95: 0.95, p99: 0.99 } as const
    for (const [name, share] of Object.entries(shares)) {
      const exact = least + (most - least) * share
      for (const times of [totalTime?.bulk, storeTime] as const) {
        const estimate = Object.entries(times ?? {}).find(([one]) => one === name)?.[1] ?? exact
        assert(
          Math.abs(estimate - exact) <= exact * 0.1 && estimate <= most,
          `${name}: ${estimate} of ${exact}`,
        )
      }
    }
    assert(totalTime?.bulk?.p95 && storeTime?.p99)
  }
})

test('a rate divides by the time that the counts cover, in which some process lived and counted', async (t) => {
  const { start, nextHeartbeats, redis, keys, overview } = await open(t)
  const reading = { totals: { accepted: 0 } }
  await start('api', () => reading)
  const point = async () => (await createReadHistory(redis, keys)(5))[0]?.point ?? assert.fail()
  assert((await point()).coveredSeconds === 0)
  const [{ id = '' } = {}] = (await overview()).processes
  /** Lets the process's last heartbeat be this old, and the time that was covered before. */
  async function age(lastSeconds: number, coveredSeconds: number): Promise<void> {
    const [seconds] = await redis.time()
    await redis.zadd(`${keys.base}processes`, (Number(seconds) - lastSeconds) * 1000, id)
    await redis.set(`${keys.base}covered`, (Number(seconds) - coveredSeconds) * 1000)
  }
  await age(30, 90)
  reading.totals.accepted = 100
  await nextHeartbeats()
  const isNear = (seconds: number | undefined, expected: number) =>
    assert(
      seconds !== undefined && seconds >= expected && seconds < expected + 9,
      `${seconds}, expected ${expected}`,
    )
  // A service that has lived for 30 s, 60 s after another one ended, counts in a window of five
  // minutes.
  isNear((await point()).coveredSeconds, 30)
  assert(perSecondOf(await point(), 100) > 2.5 && perSecondOf(await point(), 100) <= 100 / 30)
  // A process that starts has counted for no time, and the time that others covered counts once.
  await start('worker', () => ({}))
  await age(30, 10)
  await nextHeartbeats()
  isNear((await point()).coveredSeconds, 40)
})

test('a minute in which no process lived is null, and one without events is 0', async (t) => {
  const { start, redis, keys } = await open(t)
  await start('api', () => ({}))
  const [now = 0] = (await redis.keys(`${keys.base.replace('{', '\\{')}minute:*`)).map((key) =>
    Number(/\d+$/.exec(key)),
  )
  await redis.hset(`${keys.base}minute:${now - 2}`, { covered: 60_000 })
  const spans = await createReadHistory(redis, keys)('1 h')
  const ofMinute = (minute: number) =>
    spans.find(({ at }) => at === new Date(minute * 60_000).toISOString())?.point
  const seen = [now - 3, now - 2, now - 1, now].map(ofMinute)
  assert.deepEqual(
    seen.map((point) => (point === null ? 'gap' : point?.accepted)),
    ['gap', 0, 'gap', 0],
  )
})

test('the day has points of a quarter of an hour, and minutes that are over are read once', async (t) => {
  const { redis, keys } = await open(t)
  const now = Math.floor(Number((await redis.time())[0]) / 60)
  for (const minute of [now - 2, now - 1_000, now - 1_001])
    await redis.hset(`${keys.base}minute:${minute}`, {
      covered: 60_000,
      accepted: 5,
      'refused:acme': 2,
      refused: 2,
    })
  const read = createReadHistory(redis, keys)
  const day = await read('24 h')
  assert(day.length >= 95 && day.length <= 97, `${day.length}`)
  assert.equal(
    day.reduce((sum, { point }) => sum + (point?.accepted ?? 0), 0),
    15,
  )
  assert(day.some(({ point }) => point?.refusedByTenant.acme !== undefined))
  await redis.del(`${keys.base}minute:${now - 1_000}`)
  const again = await read('24 h')
  assert.equal(
    again.reduce((sum, { point }) => sum + (point?.accepted ?? 0), 0),
    15,
  )
})

test('of the refusals by tenant, those of the ten with the most are sent', async (t) => {
  const { start, history } = await open(t)
  const manyTotals = Object.fromEntries(
    Array.from({ length: 30 }, (_, at) => [`refused:tenant-${at}`, at]),
  )
  await start('api', () => ({ totals: { accepted: 1 }, manyTotals }))
  const [point] = await history()
  const expected = Array.from({ length: 10 }, (_, at) => [`tenant-${29 - at}`, 29 - at])
  assert.deepEqual(Object.entries(point?.refusedByTenant ?? {}), expected)
})

test('the overview has the queue, the largest tenants, the processes and how long MongoDB has been unavailable', async (t) => {
  const { start, redis, keys, overview } = await open(t)
  const add = createJobAdder(redis, keys)
  const source = { service: 'slack', externalId: 'a', title: 'T' } as const
  for (const [tenant, threads] of [
    ['small', 1],
    ['large', 3],
  ] as const) {
    const all = Array.from({ length: threads }, () => ({ source, quotes: [] }))
    await add({
      id: newJobId(),
      lane: 'bulk',
      job: { tenant, requestId: 'r', retained: false, threads: all },
    })
  }
  await start('worker', () => ({ unavailable: { ms: 40_000, reason: 'no' } }))
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
  for (const { seenMsAgo, memoryBytes } of processes)
    assert(seenMsAgo >= 0 && seenMsAgo < 60_000 && memoryBytes > 1e6)
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

test('MongoDB is unavailable since its first loss by any worker, for the newest reason, until no worker finds it so', async (t) => {
  const { start, nextHeartbeats, redis, keys, overview } = await open(t)
  const outage = async () => {
    const { storeAway: { since = '', reason = '' } = {}, storeAwayMs } = await overview()
    assert(
      storeAwayMs === undefined ||
        since === '' ||
        Math.abs(Date.now() - Date.parse(since) - storeAwayMs) < 5_000,
    )
    return since === ''
      ? storeAwayMs
      : [Math.round((Date.now() - Date.parse(since)) / 10_000) * 10, reason]
  }
  const stopFirst = await start('worker', () => ({
    unavailable: { ms: 92_000, reason: 'refused' },
  }))
  const stopSecond = await start('worker', () => ({
    unavailable: { ms: 10_000, reason: 'refused' },
  }))
  assert.deepEqual(await outage(), [90, 'refused'])
  await stopFirst()
  assert.deepEqual(await outage(), [90, 'refused'])
  // No worker lives that could know more.
  await stopSecond()
  assert.deepEqual(await outage(), [90, 'refused'])
  // A worker that has just started does not know it, and later has its own time.
  const third: ProcessReport = {}
  await start('worker', () => third)
  assert.equal(await outage(), undefined)
  third.unavailable = { ms: 1_000, reason: 'not authorized' }
  await nextHeartbeats()
  assert.deepEqual(await outage(), [90, 'not authorized'])
  // It reaches MongoDB again. A loss soon after that is the same outage, and a later one is not.
  delete third.unavailable
  third.storeMs = 5
  await nextHeartbeats()
  assert.equal(await outage(), undefined)
  const left = await redis.pttl(`${keys.base}store-unavailable`)
  assert(left > 0 && left <= 10_000, `${left}`)
  await redis.pexpire(`${keys.base}store-unavailable`, 0)
  third.unavailable = { ms: 1_000, reason: 'timed out' }
  await nextHeartbeats()
  assert.deepEqual(await outage(), [0, 'timed out'])
})

test('a process without a sign of life for ten minutes is forgotten, and the hash of a minute stays small', async (t) => {
  const { start, nextHeartbeats, redis, keys, overview } = await open(t)
  const long = 'x'.repeat(60)
  let beats = 0
  const stop = await start('api', () => {
    beats += 1
    const entries = Array.from({ length: 50 }, (_, at) => [
      `refused:${long}${beats}-${at}`,
      beats * 50 + at,
    ])
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

test('a minute with durations of all lengths up to a month has a bound', async (t) => {
  const { start, redis, keys } = await open(t)
  const durations = createDurations()
  for (let seconds = 0.0005; seconds < 31 * 86_400; seconds *= 1.1)
    for (const lane of LANES)
      for (const timed of [lane, `inQueue:${lane}`, `inStore:${lane}`] as const)
        durations.observe(timed, seconds)
  await start('worker', () => readingOf(durations))
  const minutes = await redis.keys(`${keys.base.replace('{', '\\{')}minute:*`)
  assert.equal(minutes.length, 2)
  for (const key of minutes) {
    const bytes = Number(await redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0'))
    assert(bytes < 3_000, `${key}: ${bytes}`)
    assert((await redis.pttl(key)) > 24 * 3_600_000)
  }
})

test('of more than 500 processes the one that was silent for longest is forgotten', async (t) => {
  const { start, redis, keys, overview } = await open(t)
  const [seconds] = await redis.time()
  const now = Number(seconds) * 1000
  const names = Array.from({ length: 500 }, (_, at) => `process-${at}`)
  await redis.zadd(`${keys.base}processes`, ...names.flatMap((name, at) => [now - at, name]))
  const about = JSON.stringify({ kind: 'worker', startedAt: new Date(now).toISOString() })
  await redis.hset(
    `${keys.base}processes:about`,
    Object.fromEntries(names.map((name) => [name, about])),
  )
  await start('api', () => ({}))
  const ids = (await overview()).processes.map(({ id }) => id)
  assert.deepEqual(
    [ids.length, ids.includes('process-498'), ids.includes('process-499')],
    [500, true, false],
  )
})
