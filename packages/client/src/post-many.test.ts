import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'vitest'
import type { ThreadRequest } from './contract.ts'
import type { ItemResult } from './post-batch.ts'
import { SluiceProblem } from './request-errors.ts'
import {
  type Answer,
  aThread,
  breakOff,
  refuse,
  scriptApi,
  store,
  threadsIn,
} from './scripted-api.test-support.ts'

const LIMITS = { limits: { importBytes: { value: 1_000_000 } }, waitSeconds: { value: 30 } }

/** Answers `GET /limits` itself, and imports by `answer`. */
function withLimits(answer: Answer, importBytes = 1_000_000): Answer {
  const limits = { ...LIMITS, limits: { importBytes: { value: importBytes } } }
  return (response, request) =>
    request.line === 'GET /limits'
      ? response.end(JSON.stringify(limits))
      : answer(response, request)
}

function someThreads(count: number): ThreadRequest[] {
  return Array.from({ length: count }, (_, at) => aThread(`t${at}`))
}

async function collect(results: AsyncIterable<ItemResult>): Promise<ItemResult[]> {
  const all: ItemResult[] = []
  for await (const result of results) all.push(result)
  return all
}

test('posts chunks of a bounded number of threads and of bytes, and yields the results in order', async (t) => {
  const api = await scriptApi(t, withLimits(store, 300))
  const results = await collect(api.client().postMany(someThreads(25), { chunkThreads: 4 }))
  assert.deepEqual(
    results.map(({ index, externalId }) => [index, externalId]),
    Array.from({ length: 25 }, (_, at) => [at, `t${at}`]),
  )
  for (const { body } of api.received) assert.ok(body.length <= 300)
  const byThreads = await collect(
    api.client().postMany(someThreads(9), { chunkThreads: 2, chunkBytes: 10_000 }),
  )
  assert.equal(byThreads.length, 9)
  assert.deepEqual(
    api.received
      .slice(-5)
      .map((request) => threadsIn(request).length)
      .sort(),
    [1, 2, 2, 2, 2],
  )
})

test('a chunk whose connection breaks delays later results and mixes up none', async (t) => {
  let broken = 0
  const api = await scriptApi(
    t,
    withLimits((response, request) => {
      const isFirst = threadsIn(request)[0]?.externalId === 't0' && broken++ < 2
      return isFirst ? breakOff(response, '') : store(response, request)
    }),
  )
  const results = await collect(api.client().postMany(someThreads(40), { chunkThreads: 5 }))
  assert.deepEqual(
    results.map(({ index, externalId }) => [index, externalId]),
    Array.from({ length: 40 }, (_, at) => [at, `t${at}`]),
  )
  assert.equal(broken, 3)
})

test('two threads of one source are never in flight at a time, and a retry precedes the later one', async (t) => {
  const open = new Set<string>()
  const titles: string[] = []
  let refused = 0
  const api = await scriptApi(
    t,
    withLimits(async (response, request) => {
      const [thread] = threadsIn(request)
      assert.ok(thread !== undefined && !open.has(thread.externalId), 'one at a time')
      open.add(thread.externalId)
      titles.push(thread.title)
      await turn()
      open.delete(thread.externalId)
      await (thread.title === 'v0' && refused++ < 2 ? refuse(503, 'queue_full') : store)(
        response,
        request,
      )
    }),
  )
  const versions = Array.from({ length: 6 }, (_, at) => aThread(`t${at % 2}`, { title: `v${at}` }))
  const results = await collect(
    api.client().postMany(versions, { chunkThreads: 1, concurrency: 6 }),
  )
  assert.deepEqual(
    results.map(({ index, outcome }) => [index, outcome]),
    Array.from({ length: 6 }, (_, at) => [at, 'created']),
  )
  const ofFirst = titles.filter((title) => Number(title.slice(1)) % 2 === 0)
  assert.deepEqual(ofFirst, ['v0', 'v0', 'v0', 'v2', 'v4'])
})

test('a consumer that pauses stops the input', async (t) => {
  const api = await scriptApi(t, withLimits(store))
  let read = 0
  function* counted() {
    for (const thread of someThreads(1_000)) {
      read += 1
      yield thread
    }
  }
  const results = api.client().postMany(counted(), { chunkThreads: 10, concurrency: 2 })
  await results.next()
  for (let at = 0; at < 100; at++) await turn()
  assert.ok(read <= 40, `${read}`)
  assert.equal((await collect(results)).length, 999)
  assert.equal(read, 1_000)
})

test('a slow input does not keep back results', async (t) => {
  const api = await scriptApi(t, withLimits(store))
  const { promise: rest, resolve: goOn } = Promise.withResolvers<void>()
  async function* slow() {
    yield aThread('t0')
    await rest
    yield aThread('t1')
  }
  const results = api.client().postMany(slow(), { chunkThreads: 1 })
  assert.equal((await results.next()).value?.externalId, 't0')
  goOn()
  assert.equal((await results.next()).value?.externalId, 't1')
  assert.equal((await results.next()).done, true)
})

test('an input that fails is reported after the results of the threads before', async (t) => {
  const api = await scriptApi(t, withLimits(store))
  function* failing() {
    yield* someThreads(7)
    throw new Error('the disk is gone')
  }
  const seen: number[] = []
  await assert.rejects(async () => {
    for await (const { index } of api.client().postMany(failing(), { chunkThreads: 3 }))
      seen.push(index)
  }, /the disk is gone/)
  assert.deepEqual(seen, [0, 1, 2, 3, 4, 5, 6])
})

test('a consumer that leaves closes the input and aborts what is in flight', async (t) => {
  const { promise: gone, resolve: hungUp } = Promise.withResolvers<void>()
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
  const api = await scriptApi(
    t,
    withLimits(async (response, request) => {
      if (threadsIn(request)[0]?.externalId === 't0') {
        await arrived
        return store(response, request)
      }
      arrive()
      return response.once('close', hungUp)
    }),
  )
  let isClosed = false
  function* closing() {
    try {
      yield* someThreads(100)
    } finally {
      isClosed = true
    }
  }
  for await (const { index } of api
    .client()
    .postMany(closing(), { chunkThreads: 1, concurrency: 2 })) {
    assert.equal(index, 0)
    break
  }
  await gone
  assert.ok(isClosed)
})

test('an aborted signal ends it although the input never answers', async (t) => {
  const api = await scriptApi(t, withLimits(store))
  const controller = new AbortController()
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
  async function* endless(): AsyncGenerator<ThreadRequest> {
    ask()
    await new Promise(() => {})
    yield aThread('never')
  }
  const reason = new Error('enough')
  const next = api.client().postMany(endless(), { signal: controller.signal }).next()
  await asked
  controller.abort(reason)
  await assert.rejects(next, (error) => error === reason)
})

test('a chunk that is refused for good ends it after the results before', async (t) => {
  const api = await scriptApi(
    t,
    withLimits((response, request) =>
      (threadsIn(request)[0]?.externalId === 't2' ? refuse(403, 'api_key_invalid') : store)(
        response,
        request,
      ),
    ),
  )
  const seen: number[] = []
  await assert.rejects(async () => {
    for await (const { index } of api.client().postMany(someThreads(9), { chunkThreads: 1 }))
      seen.push(index)
  }, SluiceProblem)
  assert.deepEqual(seen, [0, 1])
})

test('bounds that are no whole numbers are refused', async (t) => {
  const api = await scriptApi(t, withLimits(store))
  for (const options of [{ concurrency: 0 }, { chunkThreads: 1.5 }, { chunkBytes: Number.NaN }])
    await assert.rejects(api.client().postMany([], options).next(), RangeError)
})
