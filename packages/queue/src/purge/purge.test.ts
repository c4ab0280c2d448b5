import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Thread } from '@sluice/contract'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { type TestContext, test, vi } from 'vitest'
import { createEnqueuer, type JobInput } from '../enqueue/enqueue.ts'
import { createMoveFailed, readAttempts } from '../failed/failed-set.ts'
import {
  type IngestJob,
  type JobResult,
  type Lane,
  MAX_ATTEMPTS,
  newJobId,
  type ThreadReceipt,
} from '../job/job.ts'
import { queueKeys } from '../job/lanes.ts'
import {
  completed,
  consume,
  createCompleteJobs,
  createFail,
  keysWith,
} from '../queue.test-support.ts'
import { openReplyListener } from '../replies/reply-listener.ts'
import { claimName, createResults } from '../replies/results.ts'
import { createPurge, type Ids } from './purge.ts'

const WORD = 'Zanzibar'
const IDS: Ids = {
  sourceIdOf: (tenant, { service, externalId }) => JSON.stringify([tenant, service, externalId]),
  quoteIdsOf: (source, quotes) =>
    quotes.map(({ externalId, text }) => `${source}/${externalId ?? text}`),
}
const NAME = { service: 'slack', externalId: 'C "1"\\' } as const
const SOURCE_ID = IDS.sourceIdOf('acme', NAME)

/** A thread whose every text has the word. */
function thread(source: Pick<Thread['source'], 'service' | 'externalId'> = NAME): Thread {
  const quotes = [{ externalId: 'm1', text: `${WORD} text`, speaker: WORD }]
  return { source: { ...source, title: `${WORD} title` }, quotes }
}

/** A receipt with words that the request left out. */
const RECEIPT: ThreadReceipt = {
  source: { outcome: 'updated', wordCount: 2, createdAt: '2024-05-01T00:00:00.000Z' },
  outcomes: 'u',
  sourceDiffers: { description: `${WORD} description` },
  quotesDiffer: { 0: { speaker: WORD } },
}

async function setUp(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const keys = queueKeys(testQueueName())
  const enqueuer = createEnqueuer(keys, redis, UNBOUNDED)
  const results = createResults(redis, keys)
  const complete = createCompleteJobs(redis, keys)
  const { purge } = createPurge(redis, keys, IDS)
  async function add(more: Partial<JobInput> = {}, lane: Lane = 'interactive'): Promise<string> {
    const { threads = [thread()] } = more
    const [first] = threads
    const id = newJobId(first && 'source' in first ? first.source.externalId : undefined)
    await enqueuer.enqueue(id, lane, {
      tenant: 'acme',
      requestId: 'r',
      retained: false,
      ...more,
      threads,
    })
    return id
  }
  const read = async (id: string, lane: Lane = 'interactive'): Promise<IngestJob> =>
    JSON.parse((await redis.hget(keys.jobs[lane] + id, 'data')) ?? '{}')
  /** Locks a job, as a worker does. */
  async function lock(id: string, lane: Lane = 'interactive') {
    await redis.lrem(`${keys.jobs[lane]}wait`, 1, id)
    await redis.lpush(`${keys.jobs[lane]}active`, id)
    await redis.set(`${keys.jobs[lane]}${id}:lock`, 'token')
    return { lane, data: await read(id, lane), token: 'token' }
  }
  const finish = async (id: string, lane?: Lane, receipts: JobResult['receipts'] = [RECEIPT]) =>
    complete([completed(id, { ...(await lock(id, lane)), result: { receipts } })])
  const fail = async (id: string, lane?: Lane) =>
    createFail(redis, keys)(id, await lock(id, lane), `refused "${WORD} title"`)
  /** A deletion that is accepted now. */
  async function stored(more: { quoteIds?: string[]; name?: typeof NAME } = { name: NAME }) {
    const source = { service: 'slack', externalId: 'other', title: 'other' } as const
    const { stamp } = await read(await add({ threads: [{ source, quotes: [] }] }))
    return { tenant: 'acme', stamp, sourceId: SOURCE_ID, ...more }
  }
  const found = () => keysWith(redis, keys, [WORD])
  return { redis, keys, results, purge, add, read, lock, finish, fail, stored, found, complete }
}

test('no key of Redis has a word of a deleted thread, whatever became of its posts', async (t) => {
  const { redis, keys, results, purge, add, read, lock, finish, fail, stored, found } =
    await setUp(t)
  const reader = redis.duplicate()
  const listener = openReplyListener('replica', keys, reader, results)
  t.onTestFinished(() => listener.close())
  await vi.waitUntil(() => redis.exists(`${keys.base}replicas`))
  const other = thread({ service: 'slack', externalId: 'other' })
  const several = [{ ...other, source: { ...other.source, title: 'kept' }, quotes: [] }, thread()]
  const waiting = await add()
  const imported = await add({ threads: several }, 'bulk')
  const active = await add()
  await lock(active)
  const failed = await add()
  await fail(failed)
  const failedImport = await add({ threads: several }, 'bulk')
  await fail(failedImport, 'bulk')
  // Another program cut these payloads off, and garbled the third one.
  const cut = await add()
  const cutImport = await add({ threads: several }, 'bulk')
  const garbled = await add({ threads: several }, 'bulk')
  const text = JSON.stringify(await read(cut))
  await redis.hset(keys.jobs.interactive + cut, 'data', text.slice(0, -5))
  await redis.hset(keys.jobs.bulk + cutImport, 'data', text.slice(0, text.indexOf(NAME.service)))
  await redis.hset(keys.jobs.bulk + garbled, 'data', text.replaceAll('"', ''))
  const retried = await add()
  await fail(retried)
  await createMoveFailed(redis, keys)('retry', [retried], 'ada')
  const retained = await add({ retained: true }, 'bulk')
  await finish(retained, 'bulk')
  const claim = claimName('acme', 'once')
  await finish(await add({ claim }))
  await finish(await add({ replyTo: 'replica' }))
  const late = await add()
  await finish(late)
  await results.retainResult(late, JSON.stringify({ tenant: 'acme', threads: [thread()] }), 'acme')
  const before = await found()
  for (const part of ['claim:', 'events', 'replies:', 'results:', 'retained:'])
    assert(
      before.some((key) => key.includes(part)),
      `${part} in ${before}`,
    )
  const jobs = [waiting, imported, active, failed, failedImport, retried, retained, late]
  for (const id of [...jobs, cut, garbled])
    assert(
      before.some((key) => key.endsWith(id)),
      id,
    )

  await purge(await stored())
  assert.deepEqual(await found(), [])
  const left = { source: { ...NAME, title: '' }, quotes: [], deleted: true }
  assert.deepEqual((await read(waiting)).threads, [left])
  assert.deepEqual((await read(imported, 'bulk')).threads, [several[0], left])
  const kept = await results.findRetained(retained)
  assert.equal(kept?.result.receipts[0]?.source.outcome, 'deleted')
  const tried = await readAttempts(redis, keys.jobs.bulk + failedImport)
  assert.deepEqual([tried.failedThreadCount, tried.result?.receipts], [2, [null, null]])
})

test('threads of other names and tenants keep their words, and so do posts that were accepted later', async (t) => {
  const { purge, add, finish, stored, found } = await setUp(t)
  const kept = [
    await add({ tenant: 'globex' }),
    await add({ threads: [thread({ ...NAME, service: 'zendesk' })] }),
    await add({ threads: [thread({ ...NAME, externalId: 'C' }), thread()] }, 'bulk'),
  ]
  const deletion = await stored()
  const later = await add({ retained: true })
  await finish(later)
  kept.push(later, await add())
  await purge(deletion)
  const keys = await found()
  assert.deepEqual(keys.map((key) => key.slice(-36)).sort(), kept.sort())
})

test('what a worker writes of a job that it runs during the purge has no words', async (t) => {
  const { redis, keys, results, purge, add, stored, found } = await setUp(t)
  const claim = claimName('acme', 'once')
  const older = await add({ retained: true, claim })
  const failing = await add()
  await redis.hset(keys.jobs.interactive + failing, 'atm', MAX_ATTEMPTS - 1)
  const deletion = await stored()
  // A later post that a worker has merged into what was deleted then.
  const later = await add({ replyTo: 'replica' })
  const ids = [older, failing, later]
  const { source, outcomes } = RECEIPT
  const purged = Promise.withResolvers<void>()
  const begun: string[] = []
  const errors: Error[] = []
  const consumer = consume(keys, redis, {
    async work({ id, data: { threads } }) {
      begun.push(id)
      await purged.promise
      const isAgain = threads.some((one) => 'deleted' in one)
      if (id === failing && !isAgain) throw new Error(`refused "${WORD} title"`)
      return { receipts: [isAgain || !ids.includes(id) ? { source, outcomes } : RECEIPT] }
    },
    onError: (error) => errors.push(error),
  })
  t.onTestFinished(() => consumer.close(1_000))
  await vi.waitUntil(() => begun.length === 4)
  await purge(deletion)
  assert.deepEqual(
    (await found()).map((key) => key.slice(-36)),
    [later],
  )
  purged.resolve()
  await vi.waitUntil(async () => {
    const found = await results.find(ids)
    return ids.every((id) => found.get(id))
  })
  assert.deepEqual(await found(), [])
  assert.deepEqual(errors, [])
  for (const one of await Promise.all([
    results.findClaimed(claim, older),
    ...ids.map(async (id) => (await results.find([id])).get(id)),
  ]))
    assert.deepEqual(one, { receipts: [{ source, outcomes }] })
  assert.deepEqual(begun.filter((id) => id === failing).length, 2)
})

test('of a deleted quote, the words go and the other quotes stay', async (t) => {
  const { results, purge, add, read, finish, stored, found } = await setUp(t)
  const [quote] = thread().quotes
  const kept = { externalId: 'm2', text: 'kept' }
  const [equal, twin] = [{ text: 'equal' }, { text: 'equal' }]
  const source = { ...NAME, title: 'kept' }
  const threads = [{ source, quotes: [kept, quote ?? kept, equal, twin] }]
  const waiting = await add({ threads })
  const hers = { externalId: 'm3', text: WORD, speaker: WORD }
  const more = threads.map((one) => ({ ...one, quotes: [...one.quotes, hers] }))
  const retained = await add({ threads: more, retained: true })
  await finish(retained, 'interactive', [{ ...RECEIPT, outcomes: 'ucc=s' }])
  const quoteIds = ['m1', 'm3', 'equal'].map((id) => `${SOURCE_ID}/${id}`)
  await purge(await stored({ name: NAME, quoteIds }))
  assert.deepEqual(await found(), [])
  const left = [kept, { text: '', externalId: 'm1', deleted: true }]
  const [one] = (await read(waiting)).threads
  assert.deepEqual(one, {
    source,
    quotes: [...left, ...Array(2).fill({ text: '', deleted: true })],
  })
  const result = (await results.findRetained(retained))?.result
  assert.deepEqual(result?.receipts, [{ source: RECEIPT.source, outcomes: 'uddds' }])

  // The deletion of the whole thread finds what a redaction has rewritten.
  await purge({ ...(await stored({ name: NAME, quoteIds: [] })), redacts: 'all' })
  await purge(await stored())
  const onlyNames = { source: { ...NAME, title: '' }, quotes: [], deleted: true }
  assert.deepEqual((await read(waiting)).threads, [onlyNames])
})

test('no slice examines all large jobs of a small queue', async (t) => {
  const { redis, purge, add, stored, found } = await setUp(t)
  const large = { source: { ...NAME, externalId: 'large', title: 'x'.repeat(64_000) }, quotes: [] }
  await Promise.all(Array.from({ length: 60 }, () => add({ threads: [large, large] }, 'bulk')))
  await add({ threads: [large, thread()] }, 'bulk')
  const deletion = await stored()
  const sent = vi.spyOn(redis, 'sendCommand')
  await purge(deletion)
  assert.deepEqual(await found(), [])
  const scripts = sent.mock.calls.filter(([{ name }]) => name === 'evalsha')
  assert(scripts.length > 7, `${scripts.length} slices`)
})

test('a deletion by id finds the name of a thread that waits, or has failed in a job of several', async (t) => {
  const { purge, add, fail, stored, found } = await setUp(t)
  await add()
  const other = { source: { ...NAME, externalId: 'other', title: 'other' }, quotes: [] }
  await fail(await add({ threads: [other, thread()] }, 'bulk'), 'bulk')
  await purge(await stored({}))
  assert.deepEqual(await found(), [])
})

test('what an API or a frozen worker sends about a job that is gone is not kept after a purge', async (t) => {
  const { redis, keys, results, purge, add, lock, finish, stored, found, complete } = await setUp(t)
  const late = await add()
  await finish(late, 'interactive', [{ ...RECEIPT, sourceDiffers: {} }])
  const frozen = completed(await add({ replyTo: 'replica', retained: true }), {
    result: { receipts: [RECEIPT] },
  })
  frozen.data = (await lock(frozen.id)).data
  await purge(await stored())
  await redis.del(keys.jobs.interactive + frozen.id)
  await redis.hdel(`${keys.base}load:jobs`, frozen.id)
  await complete([frozen])
  await results.retainResult(late, JSON.stringify({ tenant: 'acme', threads: [thread()] }), 'acme')
  assert.deepEqual(await found(), [])
})
