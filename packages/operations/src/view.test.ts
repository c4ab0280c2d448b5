import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createProblem } from '@sluice/contract'
import { connectRetrying } from '@sluice/process/redis'
import { createEnqueuer, createImports, newJobId, queueKeys } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import { requiredUrl, testDatabase, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { OperatorOnlyError, openAdmin, type View } from './view.ts'

const VALUE = 'Ada said it'
const REASON = `title "${VALUE}" is refused`
const NOBODY = new AbortController().signal
const AT = '2024-05-01T00:00:00.000Z'
const THREAD = {
  source: { service: 'slack', externalId: 'C1', title: VALUE },
  quotes: [{ externalId: 'm1', text: VALUE }],
} as const

/** Opens a queue in which every place that can quote a thread has `VALUE`. */
async function open(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const db = await testDatabase(t)
  const keys = queueKeys(testQueueName())
  const { viewFor } = openAdmin(redis, keys, db)
  const [operator, viewer] = (['operator', 'viewer'] as const).map((role) =>
    viewFor({ role, by: 'a' }),
  )
  assert(operator?.acts !== undefined && viewer !== undefined)

  const [jobId, importId] = [newJobId(), newJobId()]
  const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const threads = [{ ...THREAD, quotes: [...THREAD.quotes] }]
  const enqueuer = createEnqueuer(keys, redis, UNBOUNDED)
  await enqueuer.enqueue(jobId, 'bulk', {
    tenant: 'acme',
    requestId: 'r',
    retained: false,
    threads,
    trace,
  })
  await redis.lrem(`${keys.jobs.bulk}wait`, 1, jobId)
  await redis.zadd(keys.failed.bulk, Date.now(), jobId)
  await redis.hset(keys.jobs.bulk + jobId, {
    failedReason: REASON,
    stacktrace: JSON.stringify([`Error: ${REASON}\n    at store.ts:1`]),
    tries: JSON.stringify({ at: AT, worker: 'here:1', reason: REASON }),
    failedThreads: JSON.stringify({
      count: 1,
      threads: [{ place: 0, service: 'slack', externalId: 'C1', reason: REASON }],
    }),
  })
  const errors = [{ pointer: '/title', code: 'type' as const, message: REASON }]
  const refused = createProblem('request_invalid', {
    detail: REASON,
    errors,
    total: 1,
    requestId: 'r',
  })
  const items = [{ index: 0, externalId: 'C2', refused }]
  await createImports(redis, keys).open(importId, {
    tenant: 'acme',
    received: 1,
    jobs: 0,
    failed: 1,
    refused: items,
  })
  const sourceId = sourceIdOf('acme', THREAD.source)
  const meta = { insertedBy: jobId }
  await db.collection<{ _id: string }>('sources').insertOne({
    _id: sourceId,
    ...{
      ...THREAD.source,
      tenant: 'acme',
      status: 'TRANSCRIBED',
      wordCount: 3,
      quoteCount: 1,
      meta,
    },
    ...{ createdAt: new Date(AT), acceptedAt: new Date(AT), description: VALUE },
  })
  await db.collection<{ _id: string }>('quotes').insertOne({
    _id: `${sourceId}${'0'.repeat(24)}`,
    ...{ ...THREAD.quotes[0], sourceId, position: '0000000000000001.000000', meta },
  })
  await redis.hset(`${keys.base}store-unavailable`, { since: Date.now(), reason: REASON })
  const { id: operationId } = await operator.acts.operate('retry', { filter: { reason: VALUE } })
  return { operator, acts: operator.acts, viewer, jobId, importId, operationId, sourceId }
}

/** The results of all reads of a view. A read that is missing here does not compile. */
async function readAll(
  view: View,
  { jobId, importId, operationId, sourceId }: Awaited<ReturnType<typeof open>>,
) {
  const found = {
    listFailed: await view.listFailed({ filter: {}, limit: 10 }),
    groupFailed: await view.groupFailed({}),
    readGroups: await view.readGroups(),
    listJobs: await view.listJobs({ state: 'failed' }),
    readJob: await view.readJob(jobId),
    readTenant: await view.readTenant('acme'),
    listOperations: await view.listOperations(),
    findOperation: await view.findOperation(operationId),
    listImports: await view.listImports(),
    findImport: await view.findImport(importId),
    listRecent: await view.listRecent({}),
    readStatus: await view.readStatus(),
    readLately: await view.readLately(),
    readHistory: await view.readHistory('1 h'),
    find: await view.find({ q: 'C1' }, NOBODY),
    readThread: await view.readThread('acme', sourceId, { limit: 10 }, NOBODY),
  } satisfies Record<Exclude<keyof View, 'acts'>, unknown>
  return {
    found,
    withValue: Object.entries(found).flatMap(([name, one]) => (quotes(one) ? [name] : [])),
  }
}

const quotes = (found: unknown) => JSON.stringify(found).includes(VALUE)

test('no read of a viewer has a value of a thread, and those of an operator have each', async (t) => {
  const opened = await open(t)
  const seen = await readAll(opened.viewer, opened)
  assert.deepEqual(seen.withValue, [])
  const ofOperator = await readAll(opened.operator, opened)
  const reasons = ['listFailed', 'groupFailed', 'readGroups', 'listJobs', 'readJob']
  const others = [
    'listOperations',
    'findOperation',
    'findImport',
    'readStatus',
    'readLately',
    'find',
  ]
  assert.deepEqual(ofOperator.withValue, [...reasons, ...others])

  const job = seen.found.readJob
  assert.equal(job?.hit.traceId, '4bf92f3577b34da6a3ce929d0e0e4736')
  assert.deepEqual(
    [job?.hit.reason, job?.tries[0]?.reason, job?.stack, job?.payload],
    [job?.reasonGroup, job?.reasonGroup, [], null],
  )
  assert.equal(job?.reasonGroup, 'title … is refused')
  assert.equal(seen.found.findImport?.problems[0]?.refused?.title, 'Request invalid')
  assert.equal(seen.found.findOperation?.filter?.reason, '…')
  assert.equal(seen.found.readThread?.quotes[0]?.externalId, 'm1')
})

test('payloads and texts are revealed to operators only, by an act', async (t) => {
  const opened = await open(t)
  const { operator, viewer, acts, jobId, sourceId } = opened
  const shown = await readAll(operator, opened)
  assert.deepEqual([shown.found.readJob?.payload, shown.found.readJob?.stack], [null, []])
  const { payload, stack } = (await acts.revealJob(jobId)) ?? {}
  assert.ok(quotes(payload) && quotes(stack))
  const thread = await acts.revealThread('acme', sourceId, { limit: 10 }, NOBODY)
  assert.deepEqual([thread?.source.title, thread?.quotes[0]?.text], [VALUE, VALUE])
  assert.equal(viewer.acts, undefined)
})

test('a viewer can not filter by reason, and so not guess what reasons quote', async (t) => {
  const { viewer } = await open(t)
  const filter = { reason: VALUE }
  await assert.rejects(viewer.listFailed({ filter, limit: 1 }), OperatorOnlyError)
  await assert.rejects(viewer.groupFailed(filter), OperatorOnlyError)
  await assert.rejects(viewer.find({ q: 'C1', ...filter }, NOBODY), OperatorOnlyError)
})
