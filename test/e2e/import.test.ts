import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { gzipSync } from 'node:zlib'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { until } from '../support/until.ts'
import { createCaller } from './support/caller.ts'
import { someThread } from './support/some-thread.ts'

interface Line {
  index: number
  externalId?: string
  status: number
  outcome?: string
  id?: string
  wordCount?: number
  quotes?: { created: number; updated: number; unchanged: number }
  problem?: { status: number; code: string; errors?: { pointer: string }[] }
}

interface ImportReply {
  status: number
  headers: Headers
  lines: Line[]
  summary: Record<string, number>
}

const NDJSON = 'application/x-ndjson'

async function post(
  { url, key }: SharedSluice,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): Promise<ImportReply> {
  const reply = await createCaller({ url, key }).postImport(body, headers)
  const texts = reply.text.split('\n').filter((text) => text !== '')
  const parsed = texts.map((text) => JSON.parse(text))
  return {
    status: reply.status,
    headers: reply.headers,
    lines: parsed.slice(0, -1),
    summary: parsed.at(-1)?.summary ?? parsed.at(-1),
  }
}

const ndjson = (threads: unknown[]) =>
  threads.map((thread) => (typeof thread === 'string' ? thread : JSON.stringify(thread))).join('\n')

describe('POST /sources:batch', () => {
  let sluice: SharedSluice
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
  })

  test('answers one line for each item, in their order, and a summary', async () => {
    const threads = Array.from({ length: 120 }, (_, at) => someThread({ externalId: `b1-${at}` }))
    // The repeats are in the job of the first ones.
    const items = [...threads.slice(0, 8), ...threads.slice(0, 3), ...threads.slice(8)]
    const { status, lines, summary, headers } = await post(sluice, ndjson(items))
    assert.equal(status, 200)
    assert.equal(headers.get('content-type'), NDJSON)
    assert.deepEqual(
      lines.map(({ index }) => index),
      Array.from({ length: 123 }, (_, at) => at),
    )
    assert.equal(lines[7]?.externalId, 'b1-7')
    assert.equal(lines[7]?.outcome, 'created')
    assert.deepEqual([lines[0]?.outcome, lines[8]?.outcome], ['created', 'unchanged'])
    assert.equal(lines[8]?.id, lines[0]?.id)
    assert.deepEqual(summary, { received: 123, created: 120, updated: 0, unchanged: 3, failed: 0 })
    assert.equal(await sluice.db.collection('sources').countDocuments({ externalId: /^b1-/ }), 120)
  })

  test('a source that two jobs of an import store is created once', async () => {
    // With a date of its own, a thread does not change if its later item is written first.
    const createdAt = '2024-05-01'
    const threads = Array.from({ length: 120 }, (_, at) =>
      someThread({ externalId: `b4-${at}`, createdAt }),
    )
    const { lines, summary } = await post(sluice, ndjson([...threads, ...threads.slice(0, 3)]))
    // The job that is written first creates the source. The other one changes nothing, but if a
    // write of it was refused meanwhile, it can't know that, and answers `updated`.
    for (const at of [0, 1, 2])
      assert.match(
        [lines[at]?.outcome, lines[120 + at]?.outcome].sort().join(),
        /^created,(unchanged|updated)$/,
      )
    assert.equal(lines[120]?.id, lines[0]?.id)
    const { unchanged = 0, updated = 0, ...others } = summary
    assert.deepEqual(others, { received: 123, created: 120, failed: 0 })
    assert.equal(unchanged + updated, 3)
    assert.equal(await sluice.db.collection('sources').countDocuments({ externalId: /^b4-/ }), 120)
  })

  test('a refused item gets the problem that POST /sources would answer, and the other items are stored', async () => {
    const { status, lines, summary } = await post(
      sluice,
      ndjson([
        someThread({ externalId: 'b2-0' }),
        '{"title":',
        '',
        '   ',
        someThread({ externalId: 'b2-2', title: '' }),
        '[1]',
        someThread({ externalId: 'b2-4' }),
      ]),
    )
    assert.equal(status, 200)
    assert.deepEqual(
      lines.map((line) => line.status),
      [200, 400, 400, 400, 200],
    )
    assert.equal(lines[1]?.problem?.code, 'json_invalid')
    assert.deepEqual(
      lines[1]?.problem?.errors?.map(({ pointer }) => pointer),
      [''],
    )
    assert.equal(lines[2]?.externalId, 'b2-2')
    assert.deepEqual(
      lines[2]?.problem?.errors?.map(({ pointer }) => pointer),
      ['/title'],
    )
    assert.deepEqual(summary, { received: 5, created: 2, updated: 0, unchanged: 0, failed: 3 })
  })

  test('items of one externalId are accepted in their order', async () => {
    const versions = Array.from({ length: 130 }, (_, at) =>
      someThread({ externalId: 'b3', title: `version ${at}` }),
    )
    const { lines } = await post(sluice, ndjson(versions))
    assert.equal(lines.filter(({ outcome }) => outcome === 'created').length, 1)
    const source = await sluice.db.collection('sources').findOne({ externalId: 'b3' })
    assert.equal(source?.title, 'version 129')
  })

  test('an import that is posted again is recognised without reading the quotes', async () => {
    const threads = Array.from({ length: 3 }, (_, at) => someThread({ externalId: `again-${at}` }))
    await post(sluice, ndjson(threads))
    await until('the batches are settled', async () => {
      const sources = await sluice.db
        .collection('sources')
        .find({ externalId: /^again-/ })
        .toArray()
      const writers = await sluice.db.collection('writers').find().toArray()
      const watermarks = new Map(writers.map(({ _id, watermark }) => [String(_id), watermark]))
      const tokens = sources.flatMap(({ meta }) => meta.tokens ?? [])
      return tokens.every(({ writer, batch }) => watermarks.get(writer) >= batch)
    })
    const quotes = sluice.db.collection('quotes')
    const sourceId = (await sluice.db.collection('sources').findOne({ externalId: 'again-1' }))?._id
    // What nobody reads, nobody corrects.
    await quotes.updateMany(
      { sourceId },
      { $set: { text: 'changed by hand' }, $unset: { 'meta.textDigest': '' } },
    )
    const { summary } = await post(sluice, ndjson(threads))
    assert.deepEqual(summary, { received: 3, created: 0, updated: 0, unchanged: 3, failed: 0 })
    assert.deepEqual(await quotes.distinct('text', { sourceId }), ['changed by hand'])
  })

  test('accepts an array, and answers one object', async () => {
    const body = [someThread({ externalId: 'b4' }), 7]
    const reply = await createCaller(sluice).postImport(body, {
      'content-type': 'application/json',
    })
    const { results, summary } = Object(JSON.parse(reply.text))
    assert.deepEqual(
      results.map(({ index, status }: Line) => [index, status]),
      [
        [0, 200],
        [1, 400],
      ],
    )
    assert.deepEqual(summary, { received: 2, created: 1, updated: 0, unchanged: 0, failed: 1 })
  })

  test('refuses an array of more than 1,000 items, and JSON that is not an array', async () => {
    const json = { 'content-type': 'application/json' }
    assert.equal((await post(sluice, JSON.stringify(Array(1_001).fill({})), json)).status, 400)
    assert.equal((await post(sluice, '{}', json)).status, 400)
  })

  test('accepts compressed lines, and reports in a last line that the rest cannot be read', async () => {
    const zipped = gzipSync(ndjson([someThread({ externalId: 'b5' })]))
    assert.equal((await post(sluice, zipped, { 'content-encoding': 'gzip' })).summary.created, 1)
    const many = gzipSync(
      ndjson(Array.from({ length: 500 }, (_, at) => someThread({ externalId: `b5-${at}` }))),
    )
    const cut = await post(sluice, many.subarray(0, many.length - 100), {
      'content-encoding': 'gzip',
    })
    assert.equal(cut.status, 200)
    assert.equal(cut.lines.at(-1)?.problem?.code, 'body_unreadable')
    assert.equal(cut.summary.failed, 1)
    assert.equal(cut.summary.created, cut.lines.length - 1)
    assert.ok(cut.lines.length > 100, `${cut.lines.length} lines`)
  })

  test('a body of which nothing can be read gets a 400', async () => {
    const zipped = gzipSync(ndjson([someThread()]))
    assert.equal(
      (await post(sluice, zipped.subarray(0, 12), { 'content-encoding': 'gzip' })).status,
      400,
    )
    assert.equal((await post(sluice, 'not zipped', { 'content-encoding': 'gzip' })).status, 400)
  })

  test('answers the first results while the body is still arriving', async () => {
    const { port } = new URL(sluice.url)
    const headers = { 'x-api-key': sluice.key, 'content-type': NDJSON }
    const sending = request({ port, method: 'POST', path: '/sources:batch', headers })
    sending.write(`${JSON.stringify(someThread({ externalId: 'b6-0' }))}\n`)
    const [reply] = await once(sending, 'response')
    const [first] = await once(reply, 'data')
    assert.equal(JSON.parse(String(first)).outcome, 'created')
    sending.end(JSON.stringify(someThread({ externalId: 'b6-1' })))
    let rest = ''
    for await (const chunk of reply) rest += chunk
    assert.match(rest, /"summary":\{"received":2,"created":2/)
  })

  test('a caller that sends everything before it reads gets all results', async () => {
    const { port } = new URL(sluice.url)
    const headers = { 'x-api-key': sluice.key, 'content-type': NDJSON }
    const sending = request({ port, method: 'POST', path: '/sources:batch', headers })
    const response = once(sending, 'response')
    const bad = `${'{"quotes":7}'}\n`.repeat(5_000)
    for (let at = 0; at < 10; at++) if (!sending.write(bad)) await once(sending, 'drain')
    sending.end()
    const [reply] = await response
    let text = ''
    for await (const chunk of reply) text += chunk
    const lines = text.trimEnd().split('\n')
    assert.equal(lines.length, 50_001)
    assert.deepEqual(JSON.parse(lines.at(-1) ?? '').summary, {
      received: 50_000,
      created: 0,
      updated: 0,
      unchanged: 0,
      failed: 50_000,
    })
    assert.equal(JSON.parse(lines[49_999] ?? '').index, 49_999)
  })

  test('requests with one Import-Id are one import for GET /batches/{id}, also while their callers wait', async () => {
    const id = crypto.randomUUID()
    const lines = ndjson([someThread({ externalId: 'b20' }), '{"title":1}'])
    for (const outcome of ['created', 'unchanged'])
      assert.equal((await post(sluice, lines, { 'import-id': id })).lines[0]?.outcome, outcome)
    const caller = createCaller(sluice)
    const found = await until('both requests are recorded', async () => {
      const { text } = await caller.get(`/batches/${id}`)
      const progress = text.startsWith('{') ? JSON.parse(text) : {}
      return progress.summary?.received === 4 && progress
    })
    // Whether more requests come, nobody knows: none is under way.
    assert.equal(found.state, 'completed')
    assert.deepEqual(found.summary, {
      received: 4,
      created: 1,
      updated: 0,
      unchanged: 1,
      failed: 2,
    })
    assert.deepEqual(
      found.problems.map((item: Line) => [item.index, item.problem?.code]),
      [1, 1].map((index) => [index, 'request_invalid']),
    )
  })

  test('with respond-async it answers 202, and its location later has the summary', async () => {
    const threads = [
      ...Array.from({ length: 60 }, (_, at) => someThread({ externalId: `b7-${at}` })),
      { title: 'x' },
    ]
    const caller = createCaller(sluice)
    const reply = await caller.postImport(ndjson(threads), { prefer: 'respond-async' })
    assert.equal(reply.status, 202)
    assert.equal(reply.headers.get('preference-applied'), 'respond-async')
    const location = reply.headers.get('location') ?? ''
    const find = async () => JSON.parse((await caller.get(location)).text)
    await until('the import is done', async () => Object(await find()).state === 'completed')
    const { summary, problems } = Object(await find())
    assert.deepEqual(summary, { received: 61, created: 60, updated: 0, unchanged: 0, failed: 1 })
    assert.deepEqual(
      problems.map(({ index }: { index: number }) => index),
      [60],
    )
  })

  test('requires a key and a known media type', async () => {
    assert.equal((await post({ ...sluice, key: 'no' }, '{}')).status, 403)
    assert.equal((await post(sluice, '{}', { 'content-type': 'text/plain' })).status, 415)
    const caller = createCaller(sluice)
    assert.equal((await caller.send('/sourcesX', { method: 'POST' })).status, 404)
    assert.equal((await caller.get(`/batches/${crypto.randomUUID()}`)).status, 404)
  })
})
