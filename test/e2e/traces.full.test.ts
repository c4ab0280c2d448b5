import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { sourceIdOf } from '@sluice/store/ids'
import { type TestContext, test } from 'vitest'
import { startSluice } from '../support/start-sluice.ts'
import { createCaller } from './support/caller.ts'
import { acceptedIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

interface ExportedSpan {
  name: string
  traceId: string
  spanId: string
  parentSpanId?: string
  links?: { traceId: string; spanId: string }[]
  events?: { attributes: { key: string; value: object }[] }[]
}

/** A receiver of OTLP over HTTP, in JSON (https://opentelemetry.io/docs/specs/otlp/#otlphttp). */
async function startReceiver(t: TestContext) {
  const spans: (ExportedSpan & { process: string })[] = []
  const server = createServer(async (request, response) => {
    const { resourceSpans } = Object(await json(request))
    for (const { resource, scopeSpans } of resourceSpans) {
      const name = resource.attributes.find(({ key }: { key: string }) => key === 'service.name')
      for (const { spans: some } of scopeSpans)
        for (const span of some) spans.push({ ...span, process: name.value.stringValue })
    }
    response.setHeader('content-type', 'application/json').end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { spans, url: `http://127.0.0.1:${Object(server.address()).port}` }
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

test('one trace leads from the request of a caller to the batch that stored it', async (t) => {
  const { spans, url } = await startReceiver(t)
  const sluice = await startSluice(t, { settings: { OTEL_EXPORTER_OTLP_ENDPOINT: url } })
  const caller = createCaller(sluice)
  const stored = sluice.workers[0]?.line(({ msg }) => msg === 'job.stored')
  const answered = sluice.api.line(
    ({ msg, path }) => msg === 'request.answered' && path === '/sources',
  )
  storedIn(await caller.post(someThread(), { traceparent: `00-${TRACE}-${PARENT}-01` }))
  assert.deepEqual([(await stored)?.traceId, (await answered).traceId], [TRACE, TRACE])
  const tried = sluice.workers[0]?.line(({ reason }) => reason !== undefined)
  const broken = sourceIdOf('acme', { service: 'slack', externalId: 'broken' })
  await sluice.db.collection<{ _id: string }>('sources').insertOne({ _id: broken })
  acceptedIn(await caller.post(someThread({ externalId: 'broken' }), { prefer: 'respond-async' }))
  await tried
  // A process that stops sends its last spans.
  for (const process of [sluice.api, ...sluice.workers]) process.signal('SIGTERM')
  await Promise.all([sluice.api, ...sluice.workers].map(({ ended }) => ended))
  const [request, enqueue, job] = ['POST /sources', 'enqueue', 'job'].map((name) =>
    spans.find((span) => span.name === name),
  )
  assert(request !== undefined && enqueue !== undefined && job !== undefined, JSON.stringify(spans))
  assert.deepEqual(
    [request.traceId, request.parentSpanId, request.process],
    [TRACE, PARENT, 'sluice-api'],
  )
  assert.deepEqual([enqueue.traceId, enqueue.parentSpanId], [TRACE, request.spanId])
  assert.deepEqual(
    [job.traceId, job.parentSpanId, job.process],
    [TRACE, enqueue.spanId, 'sluice-worker'],
  )
  const batch = spans.find(({ name }) => name === 'store batch')
  assert.deepEqual(
    batch?.links?.map(({ traceId, spanId }) => [traceId, spanId]),
    [[TRACE, job.spanId]],
  )
  // The reason may quote a text, and no deletion reaches a collector.
  const events = spans.flatMap((span) => span.events ?? [])
  const keys = events.flatMap(({ attributes }) => attributes.map(({ key }) => key))
  assert.deepEqual([...new Set(keys)], ['exception.type'])
})

test('without an endpoint nothing is sent, and the trace of a caller is passed on to the logs', async (t) => {
  const sluice = await startSluice(t)
  const caller = createCaller(sluice)
  const stored = sluice.workers[0]?.line(({ msg }) => msg === 'job.stored')
  storedIn(await caller.post(someThread(), { traceparent: `00-${TRACE}-${PARENT}-00` }))
  assert.equal((await stored)?.traceId, TRACE)
  const untraced = sluice.workers[0]?.line(
    ({ msg, traceId }) => msg === 'job.stored' && traceId === undefined,
  )
  storedIn(await caller.post(someThread(), { traceparent: 'not a trace' }))
  assert.equal((await untraced)?.traceId, undefined)
})
