import assert from 'node:assert/strict'
import { afterEach, beforeEach, type TestContext, test, vi } from 'vitest'
import { checkOf, pingWhenAsked, type Readiness, readinessOf, startAdminServer } from './health.ts'
import { openMetrics } from './metrics.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a process is ready if every check is', () => {
  const [good, bad] = [checkOf(true, 'unused'), checkOf(false, 'stopping')]
  assert.deepEqual(readinessOf({ good }), { ready: true, checks: { good: { ok: true } } })
  assert.deepEqual(readinessOf({ good, bad }), {
    ready: false,
    checks: { good: { ok: true }, bad: { ok: false, reason: 'stopping' } },
  })
})

test('a server that hangs, fails and answers again is noticed, and the reason names no server', async () => {
  let answer = (): Promise<unknown> => Promise.resolve()
  const check = pingWhenAsked(() => answer())
  assert.deepEqual(await check(), { ok: true })

  answer = () => new Promise(() => {})
  await vi.advanceTimersByTimeAsync(500)
  const late = check()
  await vi.advanceTimersByTimeAsync(1_500)
  assert.deepEqual(await late, { ok: false, reason: 'no answer within 1500 ms' })

  const cause = Object.assign(new Error(), { code: 'CERT_HAS_EXPIRED' })
  answer = () => Promise.reject(new Error('redis://secret@host', { cause }))
  assert.deepEqual(await check(), {
    ok: false,
    reason: 'not reached (CERT_HAS_EXPIRED)',
  })

  answer = () => Promise.reject(new Error('NOAUTH HELLO must be called by secret'))
  await vi.advanceTimersByTimeAsync(500)
  assert.deepEqual(await check(), { ok: false, reason: 'not reached (NOAUTH)' })

  answer = () => Promise.resolve()
  await vi.advanceTimersByTimeAsync(500)
  assert.deepEqual(await check(), { ok: true })
})

test('those who ask within half a second share one ping', async () => {
  const asked = vi.fn(async () => {})
  const check = pingWhenAsked(asked)
  await Promise.all([check(), check()])
  await vi.advanceTimersByTimeAsync(499)
  await check()
  assert.equal(asked.mock.calls.length, 1)
})

const READY: Readiness = { ready: true, checks: { redis: { ok: true } } }

async function admin(t: TestContext, state = READY) {
  const metrics = openMetrics('test', {})
  const server = await startAdminServer({
    adminPort: 0,
    adminHost: '127.0.0.1',
    metrics,
    readiness: async () => state,
  })
  t.onTestFinished(server.close)
  return (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${server.port}${path}`, init)
}

test('a ready process answers 200 with its checks', async (t) => {
  const get = await admin(t)
  const response = await get('/readyz')
  assert.equal(response.status, 200)
  assert.deepEqual(await response.json(), READY)
})

test('a process that is not ready answers 503 with the reason, and is alive all the same', async (t) => {
  const state: Readiness = {
    ready: false,
    checks: { redis: { ok: false, reason: 'not connected' } },
  }
  const get = await admin(t, state)
  const response = await get('/readyz?verbose')
  assert.equal(response.status, 503)
  assert.deepEqual(await response.json(), state)
  assert.equal((await get('/livez')).status, 200)
})

test('a process that has to be restarted is not alive, and says why', async (t) => {
  const metrics = openMetrics('test', {})
  let fault: string | undefined
  const options = {
    adminPort: 0,
    adminHost: '127.0.0.1',
    metrics,
    readiness: async () => READY,
    findFault: () => fault,
  }
  const server = await startAdminServer(options)
  t.onTestFinished(server.close)
  const livez = async () => {
    const response = await fetch(`http://127.0.0.1:${server.port}/livez`)
    return [response.status, await response.json()]
  }
  assert.deepEqual(await livez(), [200, { alive: true }])
  fault = 'a batch is stuck'
  assert.deepEqual(await livez(), [503, { alive: false, reason: 'a batch is stuck' }])
})

test('metrics are served in the text format', async (t) => {
  const get = await admin(t)
  const response = await get('/metrics')
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  assert.match(await response.text(), /^process_cpu_seconds_total/m)
})

test('other paths get a 404, other methods a 405', async (t) => {
  const get = await admin(t)
  for (const path of ['/', '/livez/', '/__proto__', '/constructor'])
    assert.equal((await get(path)).status, 404, path)
  const refused = await get('/metrics', { method: 'POST', body: 'x' })
  assert.equal(refused.status, 405)
  assert.equal(refused.headers.get('allow'), 'GET, HEAD')
})

test('a port in use is an error', async (t) => {
  const metrics = openMetrics('test', {})
  const readiness = async () => READY
  const first = await startAdminServer({ adminPort: 0, adminHost: '127.0.0.1', metrics, readiness })
  t.onTestFinished(first.close)
  await assert.rejects(
    startAdminServer({ adminPort: first.port, adminHost: '127.0.0.1', metrics, readiness }),
    {
      code: 'EADDRINUSE',
    },
  )
})

test('a second close has no effect', async () => {
  const metrics = openMetrics('test', {})
  const server = await startAdminServer({
    adminPort: 0,
    adminHost: '127.0.0.1',
    metrics,
    readiness: async () => READY,
  })
  await fetch(`http://127.0.0.1:${server.port}/livez`)
  await Promise.all([server.close(), server.close()])
  await assert.rejects(fetch(`http://127.0.0.1:${server.port}/livez`))
})

test('the ports for operators have the bounds of heads and connections', async (t) => {
  const get = await admin(t)
  const headers = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`x-${at}`, 'a']))
  assert.equal((await get('/livez', { headers })).status, 431)
  assert.equal((await get('/livez')).status, 200)
})
