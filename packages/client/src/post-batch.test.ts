import assert from 'node:assert/strict'
import { test } from 'vitest'
import { SluiceProblem, SluiceUnreachable } from './request-errors.ts'
import type { Retry } from './retries.ts'
import {
  aProblem,
  aThread,
  breakOff,
  failedLine,
  KEY,
  refuse,
  scriptApi,
  sendLines,
  store,
  storedLines,
  threadsIn,
} from './scripted-api.test-support.ts'

const threads = ['a', 'b', 'c', 'd'].map((id) => aThread(id))

test('posts a thread on each line with the key, and returns the results in order', async (t) => {
  const api = await scriptApi(t, store)
  const results = await api.client().postBatch(threads)
  assert.deepEqual(
    results.map(({ index, externalId, outcome }) => [index, externalId, outcome]),
    [
      [0, 'a', 'created'],
      [1, 'b', 'created'],
      [2, 'c', 'created'],
      [3, 'd', 'created'],
    ],
  )
  const [request] = api.received
  assert.equal(request?.line, 'POST /sources:batch')
  assert.equal(request?.headers['content-type'], 'application/x-ndjson')
  assert.equal(request?.headers['x-api-key'], KEY)
  assert.equal(api.received.length, 1)
})

test('a connection that breaks within a line is resumed after the last whole result', async (t) => {
  const cut = (text: string) => text.slice(0, text.length / 2)
  const api = await scriptApi(
    t,
    (response, request) => {
      const [first, second, third = ''] = storedLines(request)
      return breakOff(response, `${first}\n${second}\n${cut(third)}`)
    },
    store,
  )
  const retries: Retry[] = []
  const results = await api.client().postBatch(threads, { onRetry: (retry) => retries.push(retry) })
  assert.deepEqual(
    results.map(({ index, externalId }) => [index, externalId]),
    [
      [0, 'a'],
      [1, 'b'],
      [2, 'c'],
      [3, 'd'],
    ],
  )
  assert.deepEqual(
    api.received.map((request) => threadsIn(request).map(({ externalId }) => externalId)),
    [
      ['a', 'b', 'c', 'd'],
      ['c', 'd'],
    ],
  )
  assert.ok(retries[0]?.cause instanceof SluiceUnreachable)
})

test('an answer that ends in order but without all results is broken off too', async (t) => {
  const api = await scriptApi(
    t,
    (response, request) => response.writeHead(200).end(`${storedLines(request)[0]}\n`),
    store,
  )
  const results = await api.client().postBatch(threads)
  assert.equal(results.length, 4)
  assert.equal(threadsIn(api.received[1] ?? assert.fail()).length, 3)
  const short = await scriptApi(t, (response, request) =>
    sendLines(response, storedLines(request).slice(1)),
  )
  await assert.rejects(short.client({ maxRetries: 0 }).postBatch(threads), SluiceUnreachable)
})

test('only threads whose problem may pass are posted again', async (t) => {
  const api = await scriptApi(
    t,
    (response, request) => {
      const [first = ''] = storedLines(request)
      const problems = [
        aProblem(400, 'request_invalid'),
        aProblem(503, 'queue_full'),
        aProblem(504, 'job_pending'),
      ]
      sendLines(response, [first, ...problems.map((problem, at) => failedLine(at + 1, problem))])
    },
    store,
  )
  const retries: Retry[] = []
  const results = await api.client().postBatch(threads, { onRetry: (retry) => retries.push(retry) })
  assert.deepEqual(
    results.map(({ status }) => status),
    [200, 400, 200, 200],
  )
  // The line within one of the requests would mean nothing to the caller.
  assert.ok(!('line' in (results[1] ?? assert.fail())))
  assert.deepEqual(
    results.map(({ index }) => index),
    [0, 1, 2, 3],
  )
  assert.deepEqual(
    api.received.map((request) => threadsIn(request).map(({ externalId }) => externalId)),
    [
      ['a', 'b', 'c', 'd'],
      ['c', 'd'],
    ],
  )
  assert.ok(retries[0]?.cause instanceof SluiceProblem && retries[0].cause.code === 'queue_full')
})

test('a stopping service blames no thread for the rest of the body', async (t) => {
  const api = await scriptApi(
    t,
    (response, request) =>
      sendLines(response, [
        ...storedLines(request).slice(0, 2),
        failedLine(2, aProblem(503, 'stopping')),
      ]),
    (response, request) =>
      sendLines(response, [
        ...storedLines(request).slice(0, 1),
        failedLine(1, aProblem(400, 'body_unreadable')),
      ]),
    store,
  )
  const results = await api.client().postBatch(threads)
  assert.deepEqual(
    results.map(({ outcome }) => outcome),
    ['created', 'created', 'created', 'created'],
  )
  assert.deepEqual(
    api.received.map((request) => threadsIn(request).length),
    [4, 2, 1],
  )
})

test('waits for as long as Retry-After says', async (t) => {
  const api = await scriptApi(t, refuse(429, 'rate_limited', { 'retry-after': '1' }), store)
  const delays: number[] = []
  await api.client().postBatch(threads, { onRetry: ({ delayMs }) => delays.push(delayMs) })
  const [delay = 0] = delays
  assert.ok(delays.length === 1 && delay >= 1_000 && delay <= 1_200, `${delays}`)
})

test('gives up after the last retry: a refused chunk throws its problem, and refused threads keep theirs', async (t) => {
  const api = await scriptApi(t, refuse(503, 'overloaded'))
  await assert.rejects(
    api.client({ maxRetries: 2 }).postBatch(threads),
    (error) =>
      error instanceof SluiceProblem && error.code === 'overloaded' && error.requestId === 'r1',
  )
  assert.equal(api.received.length, 3)
  const full = await scriptApi(t, (response) =>
    sendLines(response, [failedLine(0, aProblem(503, 'queue_full'))]),
  )
  const [result] = await full.client({ maxRetries: 1 }).postBatch([aThread('a')])
  assert.equal(result?.problem?.code, 'queue_full')
  assert.equal(full.received.length, 2)
})

test('gives up at once if the pause would exceed the time for retries', async (t) => {
  const api = await scriptApi(t, refuse(503, 'queue_full', { 'retry-after': '60' }))
  await assert.rejects(api.client({ maxRetryMs: 30_000 }).postBatch(threads), SluiceProblem)
  assert.equal(api.received.length, 1)
})

test('a problem that no other attempt would change is thrown at once', async (t) => {
  const api = await scriptApi(t, refuse(403, 'api_key_invalid'))
  await assert.rejects(
    api.client().postBatch(threads),
    (error) => error instanceof SluiceProblem && error.status === 403,
  )
  assert.equal(api.received.length, 1)
})

test('one thread that is too large for a request gets the problem itself', async (t) => {
  const api = await scriptApi(t, refuse(413, 'body_too_large'))
  const [result] = await api.client().postBatch([aThread('a')])
  assert.equal(result?.problem?.code, 'body_too_large')
  await assert.rejects(api.client().postBatch(threads), SluiceProblem)
})

test('a source that a chunk has twice is posted once at a time, in order', async (t) => {
  const api = await scriptApi(
    t,
    (response) =>
      sendLines(response, [
        failedLine(0, aProblem(503, 'queue_full')),
        failedLine(1, aProblem(400, 'request_invalid')),
      ]),
    store,
  )
  const versions = [
    aThread('a', { title: 'first' }),
    aThread('b'),
    aThread('a', { title: 'second' }),
  ]
  const results = await api.client().postBatch(versions)
  assert.deepEqual(
    api.received.map((request) => threadsIn(request).map(({ title }) => title)),
    [['first', 'Which keyboard?'], ['first'], ['second']],
  )
  assert.deepEqual(
    results.map(({ index, status }) => [index, status]),
    [
      [0, 200],
      [1, 400],
      [2, 200],
    ],
  )
})

test('a retry of a source precedes a later chunk of that source, and other chunks do not wait', async (t) => {
  const held = Promise.withResolvers<void>()
  const api = await scriptApi(
    t,
    async (response, request) => {
      await held.promise
      refuse(503, 'queue_full')(response, request)
    },
    store,
  )
  const client = api.client()
  const first = client.postBatch([aThread('a', { title: 'first' })])
  const second = client.postBatch([aThread('a', { title: 'second' })])
  await client.postBatch([aThread('b', { title: 'other' })])
  held.resolve()
  await Promise.all([first, second])
  assert.deepEqual(
    api.received.map((request) => threadsIn(request)[0]?.title),
    ['first', 'other', 'first', 'second'],
  )
})

test('what is no value of JSON is sent as null, so that the service refuses it in its place', async (t) => {
  const api = await scriptApi(t, (response) =>
    sendLines(response, [failedLine(0, aProblem(400, 'request_invalid'))]),
  )
  const [result] = await api.client().postBatch([Object(() => {})])
  assert.equal(result?.status, 400)
  assert.equal(api.received[0]?.body, 'null\n')
})

test('an aborted signal ends a request, a pause, and the wait for an earlier request', async (t) => {
  const silent = await scriptApi(t, () => {})
  const controller = new AbortController()
  const reason = new Error('enough')
  const client = silent.client()
  const first = client.postBatch(threads, { signal: controller.signal })
  const unaware = client.postBatch([aThread('e')])
  unaware.catch(() => {})
  const behind = client.postBatch([aThread('e')], { signal: controller.signal })
  const waiting = client.postBatch(threads, { signal: controller.signal })
  const full = await scriptApi(t, refuse(503, 'queue_full', { 'retry-after': '100' }))
  const pausing = full
    .client()
    .postBatch(threads, { signal: controller.signal, onRetry: () => controller.abort(reason) })
  for (const call of [first, behind, waiting, pausing])
    await assert.rejects(call, (error) => error === reason)
})

test('nobody listens: throws what the connection reports, never the key', async (t) => {
  const api = await scriptApi(t, store)
  const client = api.client({ url: 'http://127.0.0.1:1', maxRetries: 1 })
  const error = await client.postBatch(threads).catch((thrown) => thrown)
  assert.ok(error instanceof SluiceUnreachable)
  assert.match(error.message, /ECONNREFUSED|bad port/)
  assert.doesNotMatch(error.message, new RegExp(KEY))
})
