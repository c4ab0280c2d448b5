import assert from 'node:assert/strict'
import { type TestContext, test } from 'vitest'
import { createMetrics } from './create-metrics.ts'
import { type Readiness, startAdminServer } from './start-admin-server.ts'

async function admin(t: TestContext, isReady: () => Promise<Readiness>) {
  const metrics = createMetrics({ prefix: 'sluice_', process: 'test' })
  const server = await startAdminServer({ port: 0, host: '127.0.0.1', metrics, isReady })
  t.onTestFinished(server.close)
  return (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${server.port}${path}`, init)
}

test('a ready process answers 200 with its checks', async (t) => {
  const get = await admin(t, async () => ({ ready: true, checks: { redis: true, mongodb: true } }))
  const response = await get('/readyz')
  assert.equal(response.status, 200)
  assert.deepEqual(await response.json(), { ready: true, checks: { redis: true, mongodb: true } })
})

test('a process that is not ready answers 503 and is alive all the same', async (t) => {
  const get = await admin(t, async () => ({ ready: false, checks: { redis: false } }))
  const response = await get('/readyz?verbose')
  assert.equal(response.status, 503)
  assert.deepEqual(await response.json(), { ready: false, checks: { redis: false } })
  assert.equal((await get('/livez')).status, 200)
})

test('a readiness check that fails or hangs means not ready, without a reason', async (t) => {
  const failing = await admin(t, () => Promise.reject(new Error('redis://secret@host')))
  const refused = await failing('/readyz')
  assert.equal(refused.status, 503)
  assert.deepEqual(await refused.json(), { ready: false, checks: {} })
  const hanging = await admin(t, () => new Promise(() => {}))
  assert.equal((await hanging('/readyz')).status, 503)
})

test('metrics are served in the text format', async (t) => {
  const get = await admin(t, async () => ({ ready: true, checks: {} }))
  const response = await get('/metrics')
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  assert.match(await response.text(), /^process_cpu_seconds_total/m)
})

test('other paths get a 404, other methods a 405', async (t) => {
  const get = await admin(t, async () => ({ ready: true, checks: {} }))
  for (const path of ['/', '/livez/', '/__proto__', '/constructor']) assert.equal((await get(path)).status, 404, path)
  const refused = await get('/metrics', { method: 'POST', body: 'x' })
  assert.equal(refused.status, 405)
  assert.equal(refused.headers.get('allow'), 'GET, HEAD')
})

test('a port in use is an error', async (t) => {
  const metrics = createMetrics({ prefix: 'sluice_', process: 'test' })
  const isReady = async () => ({ ready: true, checks: {} })
  const first = await startAdminServer({ port: 0, host: '127.0.0.1', metrics, isReady })
  t.onTestFinished(first.close)
  await assert.rejects(startAdminServer({ port: first.port, host: '127.0.0.1', metrics, isReady }), {
    code: 'EADDRINUSE',
  })
})

test('a second close has no effect', async () => {
  const metrics = createMetrics({ prefix: 'sluice_', process: 'test' })
  const server = await startAdminServer({
    port: 0,
    host: '127.0.0.1',
    metrics,
    isReady: async () => ({ ready: true, checks: {} }),
  })
  await fetch(`http://127.0.0.1:${server.port}/livez`)
  await Promise.all([server.close(), server.close()])
  await assert.rejects(fetch(`http://127.0.0.1:${server.port}/livez`))
})
