import assert from 'node:assert/strict'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl, type StartedProcess } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, type Posted, postThread, type Target } from '../support/post-thread.ts'
import { startSluice } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { BUSY_MS, until } from '../support/until.ts'
import { createSilentWire } from './silent-wire.ts'

/** Callers learn so soon that Redis is gone, in ms. */
const TOLD_MS = 2_000 + BUSY_MS
/** `/readyz` knows it so soon, in ms. */
const NOT_READY_MS = 3_000 + BUSY_MS
const HEALED_MS = 5_000 + BUSY_MS
/**
 * A worker's connection counts as dead after ten seconds. Nobody waits for it: other workers take
 * over its jobs earlier.
 */
const WORKER_HEALED_MS = 12_000 + BUSY_MS

const direct = requiredUrl('REDIS_URL')

/** Opens a proxy to Redis whose connections can die without a word. */
async function openSilentWire(t: TestContext, isMeant?: (sent: Buffer) => boolean) {
  const wire = createSilentWire(isMeant)
  const { url } = await openTcpProxy(t, direct, wire.gate)
  return { url, ...wire }
}

interface Readiness {
  ready: boolean
  checks: Record<string, { ok: boolean; reason?: string }>
}

async function readinessOf(url: string): Promise<Readiness> {
  return JSON.parse(await (await fetch(`${url}/readyz`)).text())
}

async function adminUrl(process: StartedProcess): Promise<string> {
  const { adminPort } = await process.line((line) => line.adminPort !== undefined)
  return `http://127.0.0.1:${adminPort}`
}

const untilReady = (url: string, withinMs: number) =>
  until('it to be ready', async () => (await readinessOf(url)).ready, withinMs)

test('callers and /readyz learn soon that the connections of an API to Redis died without a word, and new ones heal it', async (t) => {
  const wire = await openSilentWire(t)
  const sluice = await startSluice(t, { redisUrl: wire.url, workers: 0 })
  await sluice.startWorker({ REDIS_URL: direct })
  const before = await postThread(sluice, aThread())
  assert.equal(before.status, 200)

  wire.cut()
  const isNotReady = until(
    'it to be no longer ready',
    async () => !(await readinessOf(sluice.url)).ready,
    NOT_READY_MS,
  )
  const told: Posted[] = await Promise.all(
    Array.from({ length: 5 }, () => postThread(sluice, aThread())),
  )
  for (const { status, ms } of told)
    assert(status !== 200 && Number(status) > 500 && ms < TOLD_MS, `${status}, ${ms} ms`)
  await isNotReady
  const { checks } = await readinessOf(sluice.url)
  assert.equal(checks.redis?.ok, false)
  assert.match(
    checks.redis?.reason ?? '',
    /^(no answer within \d+ ms|silent|not reached( \(E\w+\))?)$/,
  )

  wire.repair()
  await untilReady(sluice.url, HEALED_MS)
  const after = await postThread(sluice, aThread())
  assert.deepEqual([after.status, after.body.code], [200, undefined])
  await openQueue(t, { ...sluice.settings, REDIS_URL: direct }).drained(HEALED_MS)
  // Nothing of those that were refused has arrived.
  await assertStored(sluice.db, [before, after])
})

/** How many callers wait at a time, and how many requests are posted. */
const CALLERS = 100
const POSTS = 1_000
/** How an API may refuse whose Redis or processor is slow. */
const BUSY = ['503 queue_unavailable', '503 overloaded', '504 acceptance_unknown']
/** A stream that nobody reads has so many bytes at most. */
const STREAM_BYTES = 17 * 1024 * 1024

test('while the reply listener of an API is frozen no caller is told of a failure, and its stream stays bounded', {
  timeout: 300_000,
}, async (t) => {
  const wire = await openSilentWire(t, (sent) => sent.includes('xread'))
  // On a slow machine a caller may wait for long, which is no failure.
  const sluice = await startSluice(t, {
    redisUrl: wire.url,
    workers: 0,
    settings: { WAIT_SECONDS: '60' },
  })
  await Promise.all(Array.from({ length: 2 }, () => sluice.startWorker({ REDIS_URL: direct })))
  const { replica } = await sluice.api.line(({ msg }) => msg === 'api.listening')
  const redis = connectRetrying({ redisUrl: direct, queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())

  wire.cut()
  const posted = await postMany(sluice)
  // A busy API may refuse what it then never accepts, or not know. Whatever it accepted must be
  // answered by its result.
  const answers = Map.groupBy(posted, ({ status, body }) =>
    status === 200 ? 'stored' : `${status} ${body.code}`,
  )
  const stored = answers.get('stored')?.length ?? 0
  for (const answer of ['stored', ...BUSY]) answers.delete(answer)
  assert.deepEqual([...answers.keys()], [])
  assert(stored > 0.9 * posted.length, `only ${stored} of ${posted.length} were stored`)
  await until(
    'it to be no longer ready',
    async () => !(await readinessOf(sluice.url)).ready,
    NOT_READY_MS,
  )
  const state = await readinessOf(sluice.url)
  assert.deepEqual(
    [state.ready, state.checks.redis?.ok, state.checks.replies?.ok],
    [false, true, false],
  )
  const stream = `${queueKeys(sluice.settings.QUEUE ?? '').base}replies:${replica}`
  const bytes = Number(await redis.call('MEMORY', 'USAGE', stream, 'SAMPLES', '0'))
  assert(bytes > 0 && bytes < STREAM_BYTES, `${bytes} bytes`)

  wire.repair()
  await untilReady(sluice.url, HEALED_MS)
  // Each lookup would take a second.
  await until('an answer by the stream', async () => {
    const { status, ms } = await postThread(sluice, aThread())
    assert.equal(status, 200)
    return ms < 1_000
  })
})

async function postMany(target: Target): Promise<Posted[]> {
  const posted: Posted[] = []
  let left = POSTS
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      while (left-- > 0) posted.push(await postThread(target, aThread()))
    }),
  )
  return posted
}

test('a worker whose connections died without a word says so, and works again by new ones', async (t) => {
  const wire = await openSilentWire(t)
  const sluice = await startSluice(t, { workers: 0 })
  const worker = await sluice.startWorker({ REDIS_URL: wire.url })
  const { drained } = openQueue(t, sluice.settings)
  const admin = await adminUrl(worker)
  const first = await postThread(sluice, aThread())
  assert.equal(first.status, 200)

  wire.cut()
  const second = await postThread(sluice, aThread(), 'respond-async')
  assert.equal(second.status, 202)
  await until(
    'the worker to be no longer ready',
    async () => {
      const { checks } = await readinessOf(admin)
      return checks.redis?.reason === 'no answer within 1500 ms'
    },
    NOT_READY_MS,
  )
  wire.repair()
  await untilReady(admin, WORKER_HEALED_MS)
  await drained(WORKER_HEALED_MS)
  await assertStored(sluice.db, [first, second])
})
