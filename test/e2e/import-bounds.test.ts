import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { chunk, importHead, openWire } from './support/open-wire.ts'
import { someThread } from './support/some-thread.ts'

const KIB = 1024
const MIB = 1024 * KIB
const NDJSON = { 'content-type': 'application/x-ndjson' }

describe('an import keeps its bounds', () => {
  let sluice: TestSluice
  let caller: Caller
  let url: string
  let chunked: { 'x-api-key': string; 'transfer-encoding': string; 'content-type': string }
  beforeSuite(async (t) => {
    const settings = { MAX_IMPORT_BYTES: String(MIB), MAX_BODY_BYTES: String(256 * KIB) }
    sluice = await startSluice(t, { settings })
    caller = createCaller(sluice)
    url = sluice.url
    chunked = { 'x-api-key': sluice.key, 'transfer-encoding': 'chunked', ...NDJSON }
  })
  const line = (externalId: string) => `${JSON.stringify(someThread({ externalId }))}\n`

  const heads: [it: string, contentType: string, bytes: number, limit: RegExp][] = [
    ['an import of lines', 'application/x-ndjson', MIB + 1, /\(importBytes\)/],
    ['an import that is an array', 'application/json', 256 * KIB + 1, /\(bodyBytes\)/],
  ]
  for (const [it, contentType, bytes, limit] of heads) {
    test(`${it} is refused by its head, and the answer names the limit`, async () => {
      const wire = await openWire(url)
      await wire.write(
        importHead({
          'x-api-key': sluice.key,
          'content-type': contentType,
          'content-length': bytes,
        }),
      )
      const answer = await wire.until(/"requestId":"[^"]+"/)
      assert.match(answer, /^HTTP\/1.1 413 /)
      assert.match(answer, limit)
      wire.socket.destroy()
    })
  }

  test('a caller that sends all of an import that is too large before reading gets its answer', async () => {
    const wire = await openWire(url)
    await wire.write(importHead(chunked))
    for (let sent = 0; sent < 20; sent++) await wire.write(chunk(' '.repeat(MIB)))
    await wire.write('0\r\n\r\n')
    const answer = await wire.until(/"requestId":"[^"]+"/)
    assert.match(answer, /^HTTP\/1.1 413 /)
    assert.match(answer, /\(importBytes\)/)
    wire.socket.destroy()
  })

  test('a caller that waited for 100 Continue and sends too much gets its answer', async () => {
    const wire = await openWire(url)
    await wire.write(importHead({ ...chunked, expect: '100-continue' }))
    await wire.until(/100 Continue/)
    wire.socket.pause()
    for (let sent = 0; sent < 20; sent++) await wire.write(chunk(' '.repeat(MIB)))
    await wire.write('0\r\n\r\n')
    assert.match(await wire.until(/"requestId":"[^"]+"/), /HTTP\/1.1 413 /)
    wire.socket.destroy()
  })

  test('if the answer has begun, its last item reports that the import is too large', async () => {
    const wire = await openWire(url)
    await wire.write(importHead(chunked) + chunk(line('bounds-begun')))
    await wire.until(/"outcome":"created"/)
    wire.socket.pause()
    for (let sent = 0; sent < 20; sent++) await wire.write(chunk(' '.repeat(MIB)))
    await wire.write('0\r\n\r\n')
    const answer = await wire.until(/\r\n0\r\n\r\n$/)
    assert.match(answer, /"index":1,"status":413,"problem":\{/)
    assert.match(
      answer,
      /"summary":\{"received":2,"created":1,"updated":0,"unchanged":0,"failed":1\}/,
    )
    // The API has read the whole body, so the connection serves the next request.
    await wire.write(`GET /limits HTTP/1.1\r\nhost: test\r\n\r\n`)
    assert.match(await wire.until(/waitSeconds/), /HTTP\/1.1 200 OK[\s\S]*HTTP\/1.1 200 OK/)
    wire.socket.destroy()
  })

  test('a line of white space is ignored, however long it is', async () => {
    const body = `${' \t'.repeat((300 * KIB) / 2)}\r\n${line('bounds-blank')}${' '.repeat(100)}\n${line('bounds-blank-2')}  `
    const { text } = await caller.postImport(body)
    assert.match(
      text,
      /"summary":\{"received":2,"created":2,"updated":0,"unchanged":0,"failed":0\}/,
    )
  })

  test('the answer to an asynchronous import lists its refused items, at most 1 MiB and five faults of each item', async () => {
    const names = Array.from({ length: 12 }, (_, at) => [`${at}-${'n'.repeat(180)}`, 1])
    const refused = `${JSON.stringify(Object.fromEntries(names))}\n`
    const body = refused.repeat(Math.floor(MIB / refused.length))
    const reply = await caller.postImport(body, { prefer: 'respond-async, handling=strict' })
    assert.equal(reply.status, 202, reply.text)
    assert.ok(reply.text.length < 1.1 * MIB, `${reply.text.length} bytes`)
    const { problems, summary } = JSON.parse(reply.text)
    assert.equal(summary.failed, Math.floor(MIB / refused.length))
    assert.deepEqual([problems[0].problem.errors.length, problems[0].problem.total], [5, 16])
  })

  test('if the body of an asynchronous import fails half-way, the problem names the location of the rest', async () => {
    const lines = Array.from({ length: 60 }, (_, at) => line(`bounds-half-${at}`)).join('')
    const headers = { prefer: 'respond-async', ...NDJSON }
    const wire = await openWire(url)
    await wire.write(importHead({ ...chunked, ...headers }) + chunk(lines))
    for (let sent = 0; sent < 2; sent++) await wire.write(chunk(' '.repeat(MIB)))
    await wire.write('0\r\n\r\n')
    const answer = await wire.until(/"requestId":"[^"]+"/)
    assert.match(answer, /^HTTP\/1.1 413 /)
    const location = /^location: (\/batches\/\S+)/m.exec(answer)?.[1] ?? ''
    await until('the import is done', async () =>
      /"completed"/.test((await caller.get(location)).text),
    )
    assert.equal(JSON.parse((await caller.get(location)).text).summary.received, 60)
    wire.socket.destroy()
  })

  test('if the connection of an asynchronous import breaks, the import can be looked up by the id in the log', async () => {
    const wire = await openWire(url)
    const lines = Array.from({ length: 60 }, (_, at) => line(`bounds-broken-${at}`)).join('')
    await wire.write(importHead({ ...chunked, prefer: 'respond-async' }) + chunk(lines))
    await until('a job of it is stored', () =>
      sluice.db.collection('sources').findOne({ externalId: 'bounds-broken-0' }),
    )
    wire.socket.destroy()
    const { importId } = await sluice.api.line(
      ({ status, importId }) => status === 'gone' && importId !== undefined,
    )
    await until('the import is done', async () =>
      /"completed"/.test((await caller.get(`/batches/${importId}`)).text),
    )
  })

  test('an array of too many bytes is refused with the limit bodyBytes', async () => {
    const wire = await openWire(url)
    await wire.write(
      importHead({ ...chunked, 'content-type': 'application/json' }) + chunk(' '.repeat(MIB)),
    )
    await wire.write('0\r\n\r\n')
    assert.match(await wire.until(/"requestId":"[^"]+"/), /\(bodyBytes\)/)
    wire.socket.destroy()
  })
})

test('a caller is cut at once if it leaves more results unread than the spill file may hold, or there is none, which the log warns of', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bounds-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const { url, key, api } = await startSluice(t, {
    workers: 0,
    settings: { MAX_SPILL_BYTES: '1000', TMPDIR: folder },
  })
  const lines = chunk(`${JSON.stringify({ quotes: Array(50).fill(7) })}\n`.repeat(1_000))
  async function untilCut(): Promise<void> {
    const wire = await openWire(url)
    await wire.write(importHead({ 'x-api-key': key, 'transfer-encoding': 'chunked', ...NDJSON }))
    await assert.rejects(async () => {
      for (let sent = 0; sent < 100; sent++) await wire.write(lines)
    })
  }
  await untilCut()
  const answered = await api.line(
    ({ msg, status }) => msg === 'request.answered' && status === 'gone',
  )
  assert.equal(answered.level, 'info')
  await rm(folder, { recursive: true })
  await untilCut()
  const { err } = await api.line(({ msg, level }) => msg === 'request.answered' && level === 'warn')
  assert.match(String(Object(err).message), /^ENOENT/)
})
