import assert from 'node:assert/strict'
import { test } from 'vitest'
import { createClient } from './client.ts'
import { SluiceProblem, SluiceUnreachable } from './request-errors.ts'
import { type Answer, aThread, KEY, refuse, scriptApi } from './scripted-api.test-support.ts'

const answerJson =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(body))

const stored = { message: 'New source received successfully.', source: { id: 's1' }, quotes: [] }

test('post returns a stored thread, and sends its options as headers', async (t) => {
  const api = await scriptApi(t, answerJson(200, stored))
  const result = await api.client().post(aThread('a'), { idempotencyKey: 'say "hi" \\', wait: 2.5 })
  assert.deepEqual(result, { kind: 'stored', answer: stored })
  const [{ line, headers, body } = assert.fail()] = api.received
  assert.equal(line, 'POST /sources')
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(headers['x-api-key'], KEY)
  assert.equal(headers['idempotency-key'], '"say \\"hi\\" \\\\"')
  assert.equal(headers.prefer, 'wait=2')
  assert.deepEqual(JSON.parse(body), aThread('a'))
})

test('post returns the job of a thread that is accepted', async (t) => {
  const api = await scriptApi(t, answerJson(202, stored, { location: '/jobs/j1' }))
  const result = await api.client().post(aThread('a'), { wait: 0 })
  assert.deepEqual(result, { kind: 'accepted', jobId: 'j1', answer: stored })
  assert.equal(api.received[0]?.headers.prefer, 'wait=0')
})

test('post is sent again after refusals, unknown acceptance and a broken connection', async (t) => {
  const api = await scriptApi(
    t,
    refuse(503, 'overloaded'),
    refuse(429, 'rate_limited'),
    refuse(504, 'acceptance_unknown'),
    (response) => response.writeHead(502).end('<html>Bad Gateway</html>'),
    (response) => response.destroy(),
    answerJson(200, stored),
  )
  assert.equal((await api.client().post(aThread('a'))).kind, 'stored')
  assert.equal(api.received.length, 6)
})

test('post throws a problem with all that the service says', async (t) => {
  const errors = [{ pointer: '/title', code: 'required', message: 'title is required.' }]
  const problem = {
    detail: 'The request has a fault.',
    code: 'request_invalid',
    requestId: 'r9',
    errors,
  }
  const api = await scriptApi(
    t,
    answerJson(400, problem),
    refuse(504, 'job_pending'),
    refuse(503, 'stopping', { 'retry-after': '7' }),
  )
  const client = api.client({ maxRetries: 0 })
  const error = await client.post(aThread('a')).catch((thrown) => thrown)
  assert.ok(error instanceof SluiceProblem)
  assert.deepEqual(
    { status: error.status, code: error.code, errors: error.errors, requestId: error.requestId },
    { status: 400, code: 'request_invalid', errors, requestId: 'r9' },
  )
  assert.equal(error.message, 'The request has a fault. (400 request_invalid) title is required.')
  await assert.rejects(client.post(aThread('a')), ({ code }) => code === 'job_pending')
  await assert.rejects(client.post(aThread('a')), ({ retryAfter }) => retryAfter === 7)
})

test('two posts of one source are sent one after the other', async (t) => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const api = await scriptApi(
    t,
    async (response, request) => {
      await held
      refuse(503, 'queue_full')(response, request)
    },
    answerJson(200, stored),
  )
  const client = api.client()
  const posts = [
    client.post(aThread('a', { title: 'first' })),
    client.post(aThread('a', { title: 'second' })),
  ]
  await client.post(aThread('b', { title: 'other' }))
  release()
  await Promise.all(posts)
  assert.deepEqual(
    api.received.map(({ body }) => JSON.parse(body).title),
    ['first', 'other', 'first', 'second'],
  )
})

test('waitForJob asks until the job is done, or its time is over', async (t) => {
  const job = { id: 'j1', state: 'waiting', changedAt: '2024-05-01T00:00:00.000Z', attempts: 0 }
  const api = await scriptApi(t, answerJson(200, job), answerJson(200, { ...job, state: 'failed' }))
  assert.equal((await api.client().waitForJob('j1')).state, 'failed')
  assert.equal(api.received[0]?.line, 'GET /jobs/j1')
  assert.equal(api.received[0]?.headers.prefer, 'wait=25')
  const never = await scriptApi(t, answerJson(200, job))
  await assert.rejects(never.client().waitForJob('j1', { signal: AbortSignal.timeout(100) }), {
    name: 'TimeoutError',
  })
})

test('getSource names the source by its id or by its service and externalId, and is undefined if it is not stored', async (t) => {
  const page = { source: { id: 's1' }, quotes: [] }
  const api = await scriptApi(
    t,
    answerJson(200, page),
    answerJson(200, page),
    refuse(404, 'source_unknown'),
    refuse(404, 'route_unknown'),
  )
  const client = api.client()
  assert.deepEqual(await client.getSource('s/1', { limit: 5, after: 'x y' }), page)
  assert.deepEqual(await client.getSource({ service: 'slack', externalId: 'C1/2&3' }), page)
  assert.equal(await client.getSource('none'), undefined)
  await assert.rejects(client.getSource('none'), SluiceProblem)
  assert.deepEqual(
    api.received.slice(0, 2).map(({ line }) => line),
    ['GET /sources/s%2F1?limit=5&after=x+y', 'GET /sources?service=slack&externalId=C1%2F2%263'],
  )
})

test('lookUpSources asks again for the sources for which an answer had no room', async (t) => {
  const full = answerJson(200, { sources: [{ id: 's1' }], rest: ['b', 'c'] })
  const api = await scriptApi(t, full, answerJson(200, { sources: [{ id: 's2' }] }))
  assert.deepEqual(await api.client().lookUpSources('email', ['a', 'b', 'c']), [
    { id: 's1' },
    { id: 's2' },
  ])
  assert.deepEqual(
    api.received.map(({ body }) => JSON.parse(body.toString()).externalIds),
    [
      ['a', 'b', 'c'],
      ['b', 'c'],
    ],
  )
})

test('lookUpSources asks for a thousand sources at a time', async (t) => {
  const api = await scriptApi(
    t,
    answerJson(200, { sources: [{ id: 's1' }] }),
    answerJson(200, { sources: [] }),
  )
  const ids = Array.from({ length: 1_001 }, (_, at) => `m${at}`)
  assert.deepEqual(await api.client().lookUpSources('email', ids), [{ id: 's1' }])
  assert.deepEqual(
    api.received.map(({ line, body }) => [line, JSON.parse(body.toString()).externalIds.length]),
    [
      ['POST /sources:lookup', 1_000],
      ['POST /sources:lookup', 1],
    ],
  )
})

test('limits are plain numbers', async (t) => {
  const limit = (value: number) => ({ value, unit: 'bytes', description: 'Size.' })
  const api = await scriptApi(
    t,
    answerJson(200, {
      limits: { bodyBytes: limit(7), importBytes: limit(9) },
      waitSeconds: limit(30),
    }),
  )
  const { bodyBytes, importBytes, waitSeconds } = await api.client().limits()
  assert.deepEqual(
    { bodyBytes, importBytes, waitSeconds },
    { bodyBytes: 7, importBytes: 9, waitSeconds: 30 },
  )
})

test('a signal ends every call', async (t) => {
  const api = await scriptApi(t, () => {})
  const controller = new AbortController()
  const { signal } = controller
  const client = api.client()
  const calls = [
    client.post(aThread('a'), { signal }),
    client.limits({ signal }),
    client.waitForJob('j1', { signal }),
    client.postMany([aThread('b')], { signal }).next(),
  ]
  const reason = new Error('enough')
  controller.abort(reason)
  for (const call of calls) await assert.rejects(call, (error) => error === reason)
})

test('a URL may have a path, and a redirection is not followed: it would take the key along', async (t) => {
  const elsewhere = await scriptApi(t, answerJson(200, {}))
  const api = await scriptApi(t, (response) =>
    response.writeHead(307, { location: elsewhere.url }).end(),
  )
  const client = createClient({ url: `${api.url}/sluice`, apiKey: KEY })
  await assert.rejects(client.post(aThread('a')), ({ status }) => status === 307)
  assert.equal(api.received[0]?.line, 'POST /sluice/sources')
  assert.equal(elsewhere.received.length, 0)
})

test('an answer that is no JSON does not come from Sluice', async (t) => {
  const api = await scriptApi(t, (response) => response.end('<html>'))
  await assert.rejects(api.client({ maxRetries: 0 }).limits(), SluiceUnreachable)
})

test('options that can not work are refused, and the key is never named', () => {
  for (const url of ['', 'ftp://host', '127.0.0.1:3000', 'http://user:password@host'])
    assert.throws(() => createClient({ url, apiKey: KEY }), TypeError)
  for (const bounds of [{ maxRetries: -1 }, { maxRetryMs: Number.NaN }])
    assert.throws(() => createClient({ url: 'http://host', apiKey: KEY, ...bounds }), RangeError)
  assert.throws(
    () => createClient({ url: 'http://host', apiKey: 'slc_secret\n' }),
    (error) => !/secret/.test(String(error)),
  )
})
