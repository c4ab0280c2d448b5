import assert from 'node:assert/strict'
import { createLogger, listen, openMetrics } from '@sluice/process'
import { QueueUnavailableError } from '@sluice/queue'
import { describe, type TestContext, test } from 'vitest'
import type { ApiDeps } from './api-deps.ts'
import { buildApp, type ServedRoute } from './app.ts'
import { apiMetrics } from './metrics.ts'
import { ProblemError } from './request/problem-error.ts'

const answered: ServedRoute['handler'] = async ({ tenant }, { id }) => ({
  status: 200,
  body: { tenant, id },
})

const routes: ServedRoute[] = [
  { method: 'get', path: '/open', access: 'open', handler: answered },
  { method: 'post', path: '/things', access: 'importer', handler: answered },
  { method: 'post', path: '/things:act', access: 'importer', handler: answered },
  { method: 'get', path: '/things/{id}', access: 'importer', handler: answered },
  {
    method: 'get',
    path: '/missing',
    access: 'importer',
    handler: () => Promise.reject(new ProblemError('route_unknown')),
  },
  { method: 'post', path: '/failures', access: 'operator', handler: answered },
  { method: 'get', path: '/failures', access: 'operator', handler: answered },
  {
    method: 'get',
    path: '/broken',
    access: 'importer',
    handler: () => Promise.reject(new Error('at 10.0.0.7:6379')),
  },
]

/**
 * An app with an importer's key, `good`, and the key `operator`. The store of keys is unavailable
 * for the key `unavailable`.
 */
async function open(t: TestContext, admit: ApiDeps['enqueuer']['admit'] = () => {}) {
  const lines: string[] = []
  const keyring = {
    async find(key: string | undefined) {
      if (key === 'good')
        return { outcome: 'known', keyId: 'k', role: 'importer', tenant: 'acme' } as const
      if (key === 'operator' || key === 'viewer')
        return { outcome: 'known', keyId: 'o', role: key, tenant: '' } as const
      return { outcome: key === 'unavailable' ? 'unavailable' : 'unknown' } as const
    },
  }
  const log = createLogger('test', 'info', { write: (line) => void lines.push(line) })
  const { metrics, text } = openMetrics('test', apiMetrics)
  const app = buildApp(
    {
      keyring,
      quota: { quotesPerSecond: 1, burstQuotes: 1 },
      metrics,
      noteProblem() {},
      noteRefusedKey() {},
      log,
      enqueuer: { admit, charge() {}, quotaLeft: () => undefined },
      stopping: new AbortController().signal,
      graceOver: new AbortController().signal,
      loopDelay: { p99Ms: 0 },
      settings: { maxLoopDelayMs: 250, otlpEndpoint: null },
    },
    routes,
  )
  const http = await listen(app, { port: 0, host: '127.0.0.1' })
  t.onTestFinished(() => {
    http.cut()
    return http.close()
  })
  return {
    lines,
    metrics: text,
    async send(method: string, path: string, key?: string) {
      const headers = key === undefined ? {} : { 'x-api-key': key }
      const response = await fetch(`http://127.0.0.1:${http.port}${path}`, { method, headers })
      const text = await response.text()
      return {
        status: response.status,
        headers: response.headers,
        text,
        body: text === '' ? {} : JSON.parse(text),
      }
    },
  }
}

describe('middleware runs in order: open routes, key, route', () => {
  const rows: [method: string, path: string, key: string | undefined, status: number][] = [
    ['GET', '/open', undefined, 200],
    ['HEAD', '/open', undefined, 200],
    ['POST', '/open', undefined, 405],
    ['GET', '/things/7', undefined, 403],
    ['GET', '/things/7', 'bad', 403],
    ['GET', '/things/7', 'unavailable', 503],
    ['GET', '/things/7', 'good', 200],
    ['POST', '/things', 'good', 200],
    ['POST', '/things:act', 'good', 200],
    ['POST', '/things%3Aact', 'good', 200],
    ['POST', '/things%3aact', 'good', 200],
    ['GET', '/things%3Aact', 'good', 405],
    ['POST', '/things:other', 'good', 404],
    ['POST', '/thingsact', 'good', 404],
    ['PUT', '/things', 'bad', 403],
    ['PUT', '/things', 'good', 405],
    ['OPTIONS', '/things', 'good', 405],
    ['GET', '/unknown', undefined, 403],
    ['GET', '/unknown', 'good', 404],
    ['GET', '/things/', 'good', 404],
    ['GET', '/Things/7', 'good', 404],
    ['GET', '/things/%ff', undefined, 403],
    ['GET', '/things/%ff', 'good', 404],
    ['GET', '/missing', 'good', 404],
  ]
  for (const [method, path, key, status] of rows) {
    test(`${method} ${path} with the key ${key}: ${status}`, async (t) => {
      const { send } = await open(t)
      assert.equal((await send(method, path, key)).status, status)
    })
  }

  test('a key of one role opens no path of the other, whatever the method', async (t) => {
    const { send } = await open(t)
    for (const [method, path, key, code] of [
      ['POST', '/things', 'operator', 'importer_only'],
      ['GET', '/things/7', 'operator', 'importer_only'],
      ['PUT', '/things', 'operator', 'importer_only'],
      ['POST', '/failures', 'good', 'operator_only'],
      ['PUT', '/failures', 'good', 'operator_only'],
      ['POST', '/failures', 'viewer', 'operator_only'],
      ['PUT', '/failures', 'viewer', 'operator_only'],
      ['GET', '/things/7', 'viewer', 'importer_only'],
      ['POST', '/things', 'viewer', 'importer_only'],
    ] as const) {
      const { status, body } = await send(method, path, key)
      assert.deepEqual([status, body.code], [403, code], `${method} ${path}`)
    }
    assert.equal((await send('POST', '/failures', 'operator')).status, 200)
    for (const key of ['operator', 'viewer'])
      assert.equal((await send('GET', '/failures', key)).status, 200)
    assert.equal((await send('GET', '/open', 'operator')).status, 200)
  })

  test('a handler gets the tenant of the key and the parameters of the path', async (t) => {
    const { send } = await open(t)
    assert.deepEqual((await send('GET', '/things/7', 'good')).body, { tenant: 'acme', id: '7' })
  })

  test('a 405 names the allowed methods', async (t) => {
    const { send } = await open(t)
    assert.equal((await send('PUT', '/open')).headers.get('allow'), 'GET, HEAD')
  })
})

test('without Redis a POST is refused, after its key', async (t) => {
  const { send } = await open(t, () => {
    throw new QueueUnavailableError()
  })
  const refused = await send('POST', '/things', 'good')
  assert.deepEqual([refused.status, refused.body.code], [503, 'queue_unavailable'])
  assert.equal((await send('POST', '/things', 'bad')).status, 403)
  assert.equal((await send('GET', '/things/7', 'good')).status, 200)
  assert.equal((await send('POST', '/failures', 'operator')).status, 200)
})

test('a POST that Redis refuses because of its disk says so', async (t) => {
  const reason =
    'MISCONF Errors writing to the AOF file: No space left on device script: on @user_script:61.'
  const { send } = await open(t, () => {
    throw new QueueUnavailableError(new Error(reason))
  })
  const { body } = await send('POST', '/things', 'good')
  assert.equal(
    body.detail,
    'Redis refuses writes: Errors writing to the AOF file: No space left on device',
  )
})

test('a POST that Redis refuses for lack of rights says so, without the name of a user of Redis', async (t) => {
  const reasons = [
    "NOPERM User sl has no permissions to run the 'evalsha' command",
    "ERR ACL failure in script: User sl has no permissions to run the 'time' command script: on @user_script:18.",
  ]
  for (const reason of reasons) {
    const { send } = await open(t, () => {
      throw new QueueUnavailableError(new Error(reason))
    })
    const { body } = await send('POST', '/things', 'good')
    assert.equal(body.detail, 'Redis refuses commands (NOPERM). The log of the API says which.')
  }
})

test('a request without a key writes a short log line, however long its path is', async (t) => {
  const { send, lines } = await open(t)
  assert.equal((await send('GET', `/${'x'.repeat(8_000)}`)).status, 403)
  assert.equal(lines.length, 1)
  assert.ok((lines[0]?.length ?? 0) < 600, `${lines[0]?.length} characters`)
})

test('a fault of our own is a 500 that reveals nothing, and a log line that has it', async (t) => {
  const { send, lines } = await open(t)
  const { status, text, body } = await send('GET', '/broken?secret=1', 'good')
  assert.deepEqual([status, body.code, body.instance], [500, 'internal', '/broken'])
  assert.doesNotMatch(text, /10\.0\.0\.7|secret/)
  assert.equal(lines.length, 1)
  const { level, err, requestId, path, tenant } = JSON.parse(lines[0] ?? '')
  assert.deepEqual([level, requestId, path, tenant], ['warn', body.requestId, '/broken', 'acme'])
  assert.match(err.message, /10\.0\.0\.7/)
})
