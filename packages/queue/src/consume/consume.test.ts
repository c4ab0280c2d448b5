import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Thread } from '@sluice/contract'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { it, type TestContext, vi } from 'vitest'
import { createEnqueuer, type JobInput } from '../enqueue/enqueue.ts'
import { readAttempts } from '../failed/failed-set.ts'
import { type FetchedJob, MAX_ATTEMPTS } from '../job/job.ts'
import { queueKeys } from '../job/lanes.ts'
import { consume, tenantThreads } from '../queue.test-support.ts'
import { createResults } from '../replies/results.ts'
import type { ConsumerOptions } from './consume.ts'
import { createFetchJobs, noteSuppressions } from './fetch-jobs.ts'

const RECEIPT = {
  source: { outcome: 'created', wordCount: 1, createdAt: '2024-05-01T00:00:00.000Z' },
  outcomes: '',
} as const

interface Failure {
  id: string
  attempt: number
  reason: string
  final: boolean
}

/**
 * A queue whose jobs are added before its consumer starts. Each call is noted, and can be waited
 * for.
 */
async function setUp(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  await once(redis, 'ready')
  t.onTestFinished(() => redis.disconnect())
  const keys = queueKeys(testQueueName())
  const enqueuer = createEnqueuer(keys, redis, UNBOUNDED)
  const calls: string[] = []
  const errors: string[] = []
  const failures: Failure[] = []
  let onCall = () => {}
  function note(call: string): void {
    calls.push(call)
    onCall()
  }
  return {
    redis,
    keys,
    calls,
    errors,
    failures,
    note,
    queue: enqueuer.queues.interactive,
    results: createResults(redis, keys),
    /** @param fields of BullMQ's job that its history left. */
    async add(
      id: string,
      fields: Record<string, string | number> = {},
      titles = [id],
      more: Partial<JobInput> = {},
    ) {
      const threads = titles.map(
        (title): Thread => ({
          source: { service: 'custom', externalId: title.slice(0, 20), title },
          quotes: [],
        }),
      )
      await enqueuer.enqueue(id, 'interactive', {
        tenant: 't',
        requestId: 'r',
        retained: false,
        threads,
        ...more,
      })
      if (Object.keys(fields).length > 0) await redis.hset(`${keys.jobs.interactive}${id}`, fields)
    },
    async called(call: string) {
      while (!calls.includes(call)) await new Promise<void>((resolve) => (onCall = resolve))
    },
    consume(handlers: Pick<ConsumerOptions, 'work'> & Partial<ConsumerOptions>) {
      const consumer = consume(keys, redis, {
        onFailed({ id, attempt }, { message: reason }, final) {
          failures.push({ id, attempt, reason, final })
          note(`failed ${id}`)
        },
        onError: (error) => errors.push(error.message),
        ...handlers,
      })
      t.onTestFinished(() => consumer.close(1_000))
      return consumer
    },
  }
}

/** Work that begins and ends when the test wants. */
function gates(note: (call: string) => void) {
  const open = new Map<string, PromiseWithResolvers<void>>()
  const gate = (id: string) => {
    const one = open.get(id) ?? Promise.withResolvers<void>()
    open.set(id, one)
    return one
  }
  return {
    finish: (id: string) => gate(id).resolve(),
    async work({ id, attempt }: FetchedJob) {
      note(`begin ${id}`)
      await gate(id).promise
      note(`end ${id} ${attempt}`)
      return { receipts: [RECEIPT] }
    },
  }
}

it('runs jobs side by side and completes each', async (t) => {
  const { add, consume, called, calls, note, results } = await setUp(t)
  const { work, finish } = gates(note)
  await add('a')
  await add('b')
  consume({ work })
  await called('begin b')
  assert.deepEqual(calls, ['begin a', 'begin b'])
  for (const id of ['a', 'b']) finish(id)
  await called('end b 1')
  while ((await results.find(['a', 'b'])).size < 2)
    await new Promise((resolve) => setTimeout(resolve, 5))
})

it('a thread has the same digest in a job of its own and in one of several; another thread has another one', async (t) => {
  const { add, consume, called, note } = await setUp(t)
  const jobs = new Map<string, FetchedJob>()
  await add('single', {}, ['a'])
  await add('import', {}, ['b', 'a', 'c "threads":[ \ud800'])
  consume({
    async work(job) {
      jobs.set(job.id, job)
      note(job.id)
      return { receipts: [RECEIPT] }
    },
  })
  await called('single')
  await called('import')
  const digests = jobs.get('import')?.digests ?? []
  assert.deepEqual([digests.length, new Set(digests).size], [3, 3])
  assert.deepEqual(jobs.get('single')?.digests, [digests[1]])
})

it('a job has the state of the list of suppressions, and each new connection to Redis is reported', async (t) => {
  const { redis, keys, add, consume, called, calls, note } = await setUp(t)
  const state = () => redis.get(`${keys.base}suppressions`)
  await noteSuppressions(redis, keys)
  const first = await state()
  await add('a')
  consume({
    async work({ id, suppressions }) {
      note(`${id} ${suppressions}`)
      return { receipts: [RECEIPT] }
    },
    onConnected: () => note('connected'),
  })
  await called(`a ${first}`)
  await noteSuppressions(redis, keys)
  const second = await state()
  assert.notEqual(second, first)
  await add('b')
  await called(`b ${second}`)
  calls.length = 0
  redis.disconnect(true)
  await called('connected')
})

it('runs a quarantined job alone: it waits for running jobs, and other jobs go back and lose no attempt', async (t) => {
  const { add, consume, called, calls, note } = await setUp(t)
  const { work, finish } = gates(note)
  await add('beside')
  await add('alone', { stc: 1 })
  await add('late')
  await add('another alone', { stc: 1 })
  consume({ work })
  await called('begin beside')
  await new Promise(setImmediate)
  assert.deepEqual(calls, ['begin beside'])
  finish('beside')
  await called('begin alone')
  assert.deepEqual(calls, ['begin beside', 'end beside 1', 'begin alone'])
  finish('alone')
  finish('late')
  finish('another alone')
  await called('end late 1')
  await called('end another alone 2')
  assert.equal(calls.indexOf('end alone 2') + 1 < calls.indexOf('end late 1'), true)
})

it('runs jobs that were stalled one after the other, and fetches each once', async (t) => {
  const { add, consume, called, calls, note } = await setUp(t)
  const ids = Array.from({ length: 128 }, (_, at) => `${at}`)
  for (const id of ids) await add(id, { stc: 1 })
  let running = 0
  consume({
    concurrency: { interactive: 128, bulk: 10 },
    async work({ id, redelivered }) {
      running += 1
      await new Promise(setImmediate)
      note(`${id}, one of ${running}${redelivered ? ', fetched again' : ''}`)
      running -= 1
      return { receipts: [RECEIPT] }
    },
  })
  await called('127, one of 1')
  assert.deepEqual(
    calls,
    ids.map((id) => `${id}, one of 1`),
  )
})

it('locks no more bytes than its bound, and a job that exceeds it as the only one', async (t) => {
  const { add, consume, called, calls, note } = await setUp(t)
  const { work, finish } = gates(note)
  for (const id of ['a', 'b', 'c']) await add(id, {}, ['x'.repeat(30_000)])
  await add('large', {}, ['x'.repeat(300_000)])
  await add('last')
  // The interactive lane may lock three quarters of these bytes: two of the jobs.
  consume({ work, bytesInHand: 100_000 })
  await called('begin b')
  finish('a')
  await called('begin c')
  assert.deepEqual(calls, ['begin a', 'begin b', 'end a 1', 'begin c'])
  finish('b')
  await called('end b 1')
  finish('c')
  await called('begin large')
  assert.deepEqual(calls.slice(-2), ['end c 1', 'begin large'])
  finish('last')
  finish('large')
  await called('end last 1')
  assert.deepEqual(calls.slice(-3), ['end large 1', 'begin last', 'end last 1'])
})

it('runs other jobs again after a quarantined job has failed', async (t) => {
  const { add, consume, called, failures, note } = await setUp(t)
  await add('alone', { stc: 1 })
  await add('next')
  consume({
    async work({ id }) {
      if (id === 'alone') throw new Error('no')
      note('next')
      return { receipts: [RECEIPT] }
    },
  })
  await called('failed alone')
  assert.deepEqual(failures, [{ id: 'alone', attempt: 2, reason: 'no', final: false }])
  await called('next')
})

const FAILING = { work: () => Promise.reject(new Error('no')) }
const FOUR_FAILED = { atm: 4 }

it('awaits the handler before the last failed attempt makes a job fail for good', async (t) => {
  const { add, consume, called, calls, failures, note, results } = await setUp(t)
  await add('a', FOUR_FAILED)
  consume({
    ...FAILING,
    async beforeFinalFailure({ id, attempt }) {
      note(`before ${id} ${attempt}`)
      return undefined
    },
  })
  await called('failed a')
  assert.deepEqual(calls, ['before a 5', 'failed a'])
  assert.deepEqual(failures, [{ id: 'a', attempt: 5, reason: 'no', final: true }])
  while ((await results.find(['a'])).size === 0)
    await new Promise((resolve) => setTimeout(resolve, 5))
  assert.deepEqual((await results.find(['a'])).get('a'), { receipts: [null], failure: 'no' })
})

it('returns a job, which loses no attempt, if the store is unavailable before the job fails for good', async (t) => {
  const { add, consume, called, calls, failures, note, queue } = await setUp(t)
  await add('a', FOUR_FAILED)
  let isUnavailable = true
  consume({
    ...FAILING,
    async beforeFinalFailure({ attempt }) {
      note(`before ${attempt}, ${isUnavailable ? 'unavailable' : 'there'}`)
      const answer = isUnavailable ? ({ unavailable: true } as const) : undefined
      isUnavailable = false
      return answer
    },
  })
  await called('failed a')
  assert.deepEqual(calls, ['before 5, unavailable', 'before 5, there', 'failed a'])
  assert.deepEqual(failures, [{ id: 'a', attempt: 5, reason: 'no', final: true }])
  assert.equal((await queue.getJob('a'))?.attemptsMade, 5)
})

it('fails a job for good although the handler throws, and reports the error', async (t) => {
  const { add, consume, called, errors, failures } = await setUp(t)
  await add('a', FOUR_FAILED)
  consume({ ...FAILING, beforeFinalFailure: () => Promise.reject(new Error('not settled')) })
  await called('failed a')
  assert.deepEqual([failures[0]?.reason, failures[0]?.final], ['no', true])
  assert.deepEqual(errors, ['not settled'])
})

it('awaits the handler before a job fails for good that crashed its workers too often, and counts crashes in it', async (t) => {
  const { add, consume, called, calls, failures, note, queue } = await setUp(t)
  await add('a', { stc: 1, atm: MAX_ATTEMPTS })
  consume({
    async work({ id }) {
      note(`work ${id}`)
      return { receipts: [RECEIPT] }
    },
    async beforeFinalFailure({ id }) {
      note(`before ${id}, ${(await queue.getJob(id))?.attemptsMade}`)
      return undefined
    },
  })
  await called('failed a')
  assert.deepEqual(calls, ['before a, 7', 'failed a'])
  assert.match(failures[0]?.reason ?? '', /gave up after 5 attempts/)
  assert.deepEqual([failures[0]?.attempt, failures[0]?.final], [5, true])
})

it('fails a job without the handler after too many crashes in it', async (t) => {
  const { add, consume, called, calls, note } = await setUp(t)
  await add('a', { stc: 1, atm: 2 * MAX_ATTEMPTS })
  consume({
    ...FAILING,
    async beforeFinalFailure() {
      note('before')
      return undefined
    },
  })
  await called('failed a')
  assert.deepEqual(calls, ['failed a'])
})

it('fails a job that Redis refuses to complete, with its threads marked as stored, and completes the others', async (t) => {
  const { redis, keys, add, consume, called, errors, failures, results } = await setUp(t)
  const key = `${keys.jobs.interactive}a`
  await add('a', FOUR_FAILED, ['a'], {
    tenant: 'u',
    retained: true,
    import: { id: 'i', places: [0] },
  })
  const deletes = { sourceId: 's', quoteIds: ['q'] }
  await add('b', {}, [], { threads: [{ name: { service: 'id', externalId: 's' }, deletes }] })
  await redis.set(`${keys.base}import:i:progress`, 'no hash')
  const stored: string[] = []
  const both = Promise.withResolvers<void>()
  consume({
    async work({ id }) {
      if (id === 'b') both.resolve()
      await both.promise
      const deleted = { source: { id: 's', outcome: 'deleted' as const, quotes: 1 } }
      return { receipts: [id === 'a' ? RECEIPT : deleted] }
    },
    stored: { inc: ({ outcome }) => void stored.push(outcome) },
  })
  await called('failed a')
  while ((await results.find(['b'])).size === 0)
    await new Promise((resolve) => setTimeout(resolve, 5))
  const reason = failures[0]?.reason ?? ''
  assert.match(
    reason,
    /^the threads are stored, but Redis refuses to complete the job: .*WRONGTYPE/,
  )
  assert.deepEqual(failures, [{ id: 'a', attempt: 5, reason, final: true }])
  assert.deepEqual((await results.find(['a'])).get('a'), { receipts: [RECEIPT], failure: reason })
  assert.equal((await readAttempts(redis, key)).failedThreadCount, 0)
  assert.equal(await redis.hget(`${keys.base}load`, `failed:${keys.jobs.interactive}`), '0')
  assert.match(errors.join(), /^job a failed, not recorded: .*WRONGTYPE/)
  assert.deepEqual(stored.sort(), ['created', 'updated'])
})

it('fails jobs that another program added or changed, with the reason, and runs the others of the fetch at once', async (t) => {
  const { redis, keys, add, consume, called, errors, failures, note, queue } = await setUp(t)
  const { interactive } = keys.jobs
  await redis.lpush(`${interactive}wait`, 'foreign')
  await redis.hset(`${interactive}foreign`, { name: 'foreign', data: '{"some":"thing"}' })
  for (const id of ['no JSON', 'no data', 'null']) await add(id, {}, ['a', 'b'])
  await redis.hset(`${interactive}no JSON`, 'data', '{')
  await redis.hdel(`${interactive}no data`, 'data')
  await redis.hset(`${interactive}null`, 'data', '{"tenant":"t","threads":[null]}')
  await add('ours')
  consume({
    async work({ id }) {
      note(`work ${id}`)
      return { receipts: [RECEIPT] }
    },
  })
  const ids = ['foreign', 'no JSON', 'no data', 'null']
  for (const call of ['work ours', ...ids.map((id) => `failed ${id}`)]) await called(call)
  const reason = 'Sluice did not write the payload: another program added or changed this job'
  assert.deepEqual(
    failures.sort((one, other) => ids.indexOf(one.id) - ids.indexOf(other.id)),
    ids.map((id) => ({ id, attempt: 1, reason, final: true })),
  )
  assert.deepEqual(errors, [])
  assert.equal(await queue.getFailedCount(), 4)
  assert.equal(await redis.hget(`${keys.base}load`, `failed:${interactive}`), '6')
  assert.equal(await tenantThreads(redis, keys, 't'), 0)
})

it('counts no threads of a job whose lock it has lost: the worker that has the lock counts them', async (t) => {
  const { redis, keys, note, called, add, consume } = await setUp(t)
  const { work, finish } = gates(note)
  const stored: string[] = []
  const consumer = consume({ work, stored: { inc: ({ outcome }) => void stored.push(outcome) } })
  for (const id of ['kept', 'lost']) await add(id)
  for (const id of ['kept', 'lost']) await called(`begin ${id}`)
  await redis.set(`${keys.jobs.interactive}lost:lock`, 'of another worker')
  for (const id of ['kept', 'lost']) finish(id)
  await consumer.close(1_000)
  assert.deepEqual(stored, ['created'])
  assert.deepEqual(await redis.lrange(`${keys.jobs.interactive}active`, 0, -1), ['lost'])
})

it('returns a job, which loses no attempt, if Redis is unavailable as it completes', async (t) => {
  const { redis, add, consume, errors, failures, results } = await setUp(t)
  const attempts: number[] = []
  await add('a')
  consume({
    async work({ attempt }) {
      attempts.push(attempt)
      if (attempts.length > 1) return { receipts: [RECEIPT] }
      const complete = Reflect.get(redis, 'sluice:complete')
      Reflect.set(redis, 'sluice:complete', async () => {
        Reflect.set(redis, 'sluice:complete', complete)
        throw Object.assign(new Error('MISCONF Errors writing to the AOF file'), {
          name: 'ReplyError',
        })
      })
      return { receipts: [RECEIPT] }
    },
  })
  while (attempts.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.deepEqual([attempts, failures], [[1, 1], []])
  assert.match(errors.join(), /^MISCONF/)
  assert.notEqual((await results.find(['a'])).size, 0)
})

it('names the jobs that it has had for longer than a time', async (t) => {
  const { add, called, note, consume } = await setUp(t)
  const { work, finish } = gates(note)
  await add('a')
  const consumer = consume({ work })
  await called('begin a')
  const [slow, ...others] = consumer.lockedFor(-1)
  assert.deepEqual([slow?.id, slow?.name, others], ['a', 'custom/a', []])
  assert.deepEqual(consumer.lockedFor(60_000), [])
  finish('a')
  await called('end a 1')
})

it('reports retries, failures and stalled jobs by the events of BullMQ, and no successful jobs', async (t) => {
  const { add, consume, called, redis, keys, queue, note, results } = await setUp(t)
  await add('stalls')
  const lockAndDie = createFetchJobs(redis, keys, 'killed', 1)
  const { jobs } = await lockAndDie('interactive', 'token', {
    jobs: 1,
    bytes: 1_000_000,
    isEmpty: true,
  })
  assert.deepEqual(
    jobs.map(({ id }) => id),
    ['stalls'],
  )
  await add('succeeds')
  await add('is retried', { atm: 3 })
  await add('fails', FOUR_FAILED)
  consume({
    async work({ id, attempt }) {
      note(`${id} ${attempt}`)
      // On a slow machine, the next attempt may begin before the test ends.
      if (id === 'fails' || `${id} ${attempt}` === 'is retried 4') throw new Error('no')
      return { receipts: [RECEIPT] }
    },
  })
  await called('failed is retried')
  await called('stalls 2')
  const done = ['succeeds', 'fails', 'stalls']
  while ((await results.find(done)).size < done.length) await new Promise(setImmediate)
  const entries = await redis.xrange(queue.toKey('events'), '-', '+')
  const events = entries
    .map(([, [, event, , id]]) => `${id}: ${event}`)
    .filter((event) => !event.endsWith(': progress'))
  assert.deepEqual(events.sort(), [
    'fails: failed',
    'is retried: delayed',
    'stalls: stalled',
    'stalls: waiting',
  ])
})

it('retries a failed job in time although the clock of Redis is a minute behind', async (t) => {
  const { add, consume, called, note, calls } = await setUp(t)
  const now = Date.now
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 60_000)
  t.onTestFinished(() => clock.mockRestore())
  consume({
    async work({ attempt }) {
      note(`attempt ${attempt}`)
      if (attempt === 1) throw new Error('no')
      return { receipts: [RECEIPT] }
    },
  })
  const since = performance.now()
  await add('a')
  await called('attempt 2')
  assert.deepEqual(calls, ['attempt 1', 'failed a', 'attempt 2'])
  assert(performance.now() - since < 30_000)
})
