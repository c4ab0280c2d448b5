import assert from 'node:assert/strict'
import { type TestContext, test } from 'vitest'
import { createMetrics } from './create-metrics.ts'
import type { Readiness } from './readiness.ts'
import { startAdminServer } from './start-admin-server.ts'

const READY: Readiness = { ready: true, checks: { redis: { ok: true } } }

async function admin(t: TestContext, state = READY) {
  const metrics = createMetrics({ prefix: 'sluice_', process: 'test' })
  const server = await startAdminServer({ port: 0, host: '127.0.0.1', metrics, readiness: async () => state })
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
  const state: Readiness = { ready: false, checks: { redis: { ok: false, reason: 'not connected' } } }
  const get = await admin(t, state)
  const response = await get('/readyz?verbose')
  assert.equal(response.status, 503)
  assert.deepEqual(await response.json(), state)
  assert.equal((await get('/livez')).status, 200)
})

test('a process that has to be restarted is not alive, and says why', async (t) => {
  const metrics = createMetrics({ prefix: 'sluice_', process: 'test' })
  let fault: string | undefined
  const options = { port: 0, host: '127.0.0.1', metrics, readiness: async () => READY, findFault: () => fault }
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
  for (const path of ['/', '/livez/', '/__proto__', '/constructor']) assert.equal((await get(path)).status, 404, path)
  const refused = await get('/metrics', { method: 'POST', body: 'x' })
  assert.equal(refused.status, 405)
  assert.equal(refused.headers.get('allow'), 'GET, HEAD')
})

test('a port in use is an error', async (t) => {
  const metrics = createMetrics({ prefix: 'sluice_', process: 'test' })
  const readiness = async () => READY
  const first = await startAdminServer({ port: 0, host: '127.0.0.1', metrics, readiness })
  t.onTestFinished(first.close)
  await assert.rejects(startAdminServer({ port: first.port, host: '127.0.0.1', metrics, readiness }), {
    code: 'EADDRINUSE',
  })
})

test('a second close has no effect', async () => {
  const metrics = createMetrics({ prefix: 'sluice_', process: 'test' })
  const server = await startAdminServer({
    port: 0,
    host: '127.0.0.1',
    metrics,
    readiness: async () => READY,
  })
  await fetch(`http://127.0.0.1:${server.port}/livez`)
  await Promise.all([server.close(), server.close()])
  await assert.rejects(fetch(`http://127.0.0.1:${server.port}/livez`))
})
