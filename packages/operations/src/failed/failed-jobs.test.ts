import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { type FailedJobFilter, type Service, unlistedAttempts } from '@sluice/contract'
import { connectRetrying } from '@sluice/process/redis'
import {
  createFetchJobs,
  createImports,
  createResults,
  type Lane,
  newJobId,
  openQueue,
  PartlyStoredError,
  queueKeys,
} from '@sluice/queue'
import {
  completed,
  consume,
  createCompleteJobs,
  createFail,
  createJobAdder,
  createReadLoad,
  createRecordAttempt,
  MAX_ATTEMPTS,
  tenantThreads,
} from '@sluice/queue/test-support'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { type TestContext, test, vi } from 'vitest'
import { createReadJob, failedJobOf } from '../jobs/jobs.ts'
import { createReadState } from '../overview/overview.ts'
import { createFailedJobs } from './failed-jobs.ts'
import { createOperations } from './operations.ts'
import { groupIdOf } from './reasons.ts'

/** A busy machine may need longer than the second that Vitest waits by itself. */
const HANG_MS = 60_000

interface Failing {
  lane?: Lane
  tenant?: string
  service?: Service
  externalIds?: string[]
  /** The job deletes the threads. */
  deletes?: boolean
  reason?: string
}

async function open(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  const keys = queueKeys(testQueueName())
  const queues = {
    interactive: openQueue(keys, 'interactive', redis),
    bulk: openQueue(keys, 'bulk', redis),
  }
  t.onTestFinished(() => redis.disconnect())
  const enqueue = createJobAdder(redis, keys)
  const fetch = createFetchJobs(redis, keys, 'a-worker', 5_000)
  const failFetched = createFail(redis, keys)
  const { readAny } = createReadJob(redis, keys)
  return {
    redis,
    failFetched,
    complete: createCompleteJobs(redis, keys),
    keys,
    queues,
    failedJobs: createFailedJobs(redis, keys),
    async find(id: string) {
      const found = await readAny(id)
      return found && failedJobOf(found)
    },
    fetch,
    /**
     * Enqueues a job and has it fail for good, as a worker does. The next job fails in a later
     * millisecond.
     */
    async fail({
      lane = 'interactive',
      tenant = 'acme',
      service = 'slack',
      externalIds = ['a'],
      deletes = false,
      reason = 'no',
    }: Failing) {
      const id = newJobId()
      const threads = externalIds.map((externalId) =>
        deletes
          ? { deletes: { sourceId: externalId }, name: { service, externalId } }
          : { source: { service, externalId, title: 'T' }, quotes: [] },
      )
      await enqueue({ id, lane, job: { tenant, requestId: 'r', retained: false, threads } })
      const { jobs } = await fetch(lane, 'token', { jobs: 1, bytes: 1_000_000, isEmpty: true })
      assert.equal(jobs[0]?.id, id)
      await failFetched(id, { lane }, reason)
      const failedBy = Date.now()
      while (Date.now() === failedBy) await setImmediate()
      return id
    },
  }
}

test('failed jobs of both lanes are found by tenant, service, externalId, reason and time, newest first', async (t) => {
  const { failedJobs, fail } = await open(t)
  const first = await fail({ externalIds: ['a"\u00e9\\'], reason: 'Title is REFUSED' })
  const second = await fail({ lane: 'bulk', externalIds: ['b', 'c'], service: 'zendesk' })
  const third = await fail({ tenant: 'globex', externalIds: ['a'] })
  const found = async (filter: FailedJobFilter) =>
    (await failedJobs.list({ filter, limit: 10 })).jobs.map(({ id }) => id)

  assert.deepEqual(await found({}), [third, second, first])
  assert.deepEqual(await found({ tenant: 'acme' }), [second, first])
  assert.deepEqual(await found({ tenant: '' }), [])
  assert.deepEqual(await found({ service: 'slack' }), [third, first])
  assert.deepEqual(await found({ externalId: 'a"\u00e9\\' }), [first])
  assert.deepEqual(await found({ externalId: 'c', service: 'zendesk' }), [second])
  assert.deepEqual(await found({ externalId: 'c', service: 'slack' }), [])
  assert.deepEqual(await found({ reason: 'title is refused' }), [first])
  assert.deepEqual(await found({ reason: '.*' }), [])
  const { jobs } = await failedJobs.list({ filter: {}, limit: 10 })
  assert.deepEqual(await found({ since: jobs[0]?.failedAt ?? '' }), [third])
  assert.deepEqual(await found({ until: jobs[1]?.failedAt ?? '', tenant: 'globex' }), [])
  assert.deepEqual(
    [jobs[1]?.name, jobs[1]?.threads, jobs[1]?.lane],
    ['zendesk/b … zendesk/c (2)', 2, 'bulk'],
  )
})

test('failed deletions are found and shown as jobs of their threads', async (t) => {
  const { failedJobs, fail, find } = await open(t)
  const one = await fail({ externalIds: ['a'], deletes: true })
  const many = await fail({ lane: 'bulk', externalIds: ['b', 'a'], deletes: true })
  const filter = { externalId: 'a', service: 'slack' as const }
  const { jobs } = await failedJobs.list({ filter, limit: 10 })
  assert.deepEqual(
    jobs.map(({ id, name, threads }) => [id, name, threads]),
    [
      [many, 'slack/b … slack/a (2)', 2],
      [one, 'slack/a', 1],
    ],
  )
  assert.equal((await find(many))?.failedThreadCount, 2)
})

test('a job of one thread is found by its name, without its data, which may be large', async (t) => {
  const { failedJobs, fail, keys, redis } = await open(t)
  const id = await fail({ externalIds: ['C1/1.2'] })
  await redis.hset(keys.jobs.interactive + id, 'data', 'not read')
  const found = async (filter: FailedJobFilter) =>
    (await failedJobs.list({ filter, limit: 10 })).jobs.map((job) => job.id)

  assert.deepEqual(await found({ externalId: 'C1/1.2' }), [id])
  assert.deepEqual(await found({ externalId: 'C1/1.2', service: 'slack' }), [id])
  assert.deepEqual(await found({ externalId: '1.2' }), [])
  assert.deepEqual(await found({ externalId: '' }), [])
  assert.deepEqual(await found({ service: 'zendesk' }), [])
})

test('failures of one cause have one reasonGroup, by which they are found together', async (t) => {
  const { find, fail, failedJobs } = await open(t)
  const reasonOf = (id: string) =>
    `threads[${id.length}] "a\\"${id}": E11000 of ${id}:27017 can't be, isn't '${id}'`
  const alone = reasonOf('b1').replace(/^.*?: /, '')
  const ids = [await fail({ reason: alone }), await fail({ reason: reasonOf('2024-05-01T00:00Z') })]
  await fail({ reason: reasonOf('b1').replace('E11000', 'E11001') })
  const job = await find(ids[0] ?? '')
  assert(job !== undefined)
  const { reasonGroup } = job
  assert.equal(reasonGroup, "E11000 of … can't be, isn't …")
  const { jobs } = await failedJobs.list({ filter: { group: groupIdOf(reasonGroup) }, limit: 10 })
  assert.deepEqual(
    jobs.map(({ id }) => id),
    ids.toReversed(),
  )
  await fail({ reason: 'timed out', externalIds: ['a', 'b', 'c'], tenant: 'other' })
  const { groups, isComplete } = await failedJobs.groups({})
  assert.deepEqual(
    groups.map(({ jobs, threads, reasonGroup }) => [jobs, threads, reasonGroup]),
    [
      [1, 3, 'timed out'],
      [2, 2, reasonGroup],
      [1, 1, reasonGroup.replace('E11000', 'E11001')],
    ],
  )
  assert.deepEqual([groups[1]?.jobId, isComplete], [ids[1], true])
  const [, ofCause] = groups
  assert.deepEqual(
    [ofCause?.id, ofCause?.hours],
    [groupIdOf(reasonGroup), [...Array(23).fill(0), 2]],
  )
  assert.deepEqual((await failedJobs.groups({ tenant: 'other' })).groups[0]?.threads, 3)
  assert.equal((await failedJobs.groups({ tenant: 'other' })).groups.length, 1)
  const cut = await fail({ reason: `refused: "${'x'.repeat(3_000)}"` })
  assert.equal((await find(cut))?.reasonGroup, 'refused: …')
})

test('a reason group has the names in the rule that MongoDB refused by, and no value', async (t) => {
  const { find, fail, failedJobs } = await open(t)
  const reasonOf = (propertyName: string, text: string) =>
    `refused (errInfo ${JSON.stringify({ operatorName: '$not', propertyName, reason: 'no', consideredValue: { text } })})`
  const hostile = ',"secret":"propertyName":"secret" {"secret":'
  const groups = []
  for (const [field, text] of [
    ['text', 'fine'],
    ['text', hostile],
    ['text', `${hostile}\\`],
    ['speaker', 'fine'],
  ] as const) {
    groups.push((await find(await fail({ reason: reasonOf(field, text) })))?.reasonGroup)
  }
  const group =
    'refused (errInfo {"operatorName":"$not","propertyName":"text","reason":…,"consideredValue":{"text":…}})'
  assert.deepEqual(groups, [group, group, group, group.replace('"text",', '"speaker",')])
  const { jobs } = await failedJobs.list({ filter: { group: groupIdOf(group) }, limit: 10 })
  assert.equal(jobs.length, 3)
})

test('failures by two rules are two groups, even if only a pattern or a number differs', async (t) => {
  const { fail, failedJobs } = await open(t)
  const pattern = (text: string) => ({
    text: { $regularExpression: { pattern: text, options: '' } },
  })
  const rules = [pattern('^[a-z{"]+$'), pattern('^[A-Z]+$'), { minLength: 5 }, { minLength: 7 }]
  for (const specifiedAs of rules)
    for (const consideredValue of ['secret-1', 'secret "specifiedAs":{"x":1}'])
      await fail({
        reason: `refused (errInfo ${JSON.stringify({ specifiedAs, consideredValue })})`,
      })
  const { groups } = await failedJobs.groups({})
  const expected = rules.map(
    (rule) => `refused (errInfo {"specifiedAs":${JSON.stringify(rule)},"consideredValue":…})`,
  )
  assert.deepEqual(groups.map(({ reasonGroup }) => reasonGroup).sort(), expected.sort())
  for (const { reasonGroup, jobs } of groups) {
    assert.equal(jobs, 2)
    assert.equal(
      (await failedJobs.list({ filter: { group: groupIdOf(reasonGroup) }, limit: 10 })).jobs.length,
      2,
    )
  }
})

test('a reason that is longer than what lists show has one reasonGroup everywhere', async (t) => {
  const { find, fail, failedJobs } = await open(t)
  const id = await fail({ reason: `threads[0] "slack/a": ${'refused '.repeat(300)}` })
  const { jobs } = await failedJobs.list({ filter: {}, limit: 1 })
  assert.equal(jobs[0]?.reason.length, 2_000)
  assert.equal(jobs[0]?.reasonGroup, (await find(id))?.reasonGroup)
})

test('groups read no payload, but that of a job without a record of its load', async (t) => {
  const { fail, failedJobs, redis, keys } = await open(t)
  await redis.hset(keys.jobs.interactive + (await fail({})), 'data', 'not read')
  await redis.hdel(keys.jobs.interactive + (await fail({ externalIds: ['a', 'b'] })), 'load')
  assert.deepEqual(
    (await failedJobs.groups({})).groups.map(({ jobs, threads }) => [jobs, threads]),
    [[2, 3]],
  )
})

test('pages neither repeat nor leave out a job, also of those that failed in one millisecond', async (t) => {
  const { failedJobs, fail, redis, keys } = await open(t)
  const ids: string[] = []
  for (let at = 0; at < 25; at++)
    ids.push(await fail({ lane: at % 3 === 0 ? 'bulk' : 'interactive' }))
  for (const [at, id] of ids.entries()) {
    const lane = at % 3 === 0 ? keys.jobs.bulk : keys.jobs.interactive
    await redis.zadd(`${lane}failed`, at < 20 ? 1_000 : 2_000, id)
  }
  const seen: string[] = []
  let after: { at: number; id: string } | undefined
  do {
    const page = await failedJobs.scan({ filter: {}, limit: 4, ...(after && { after }) })
    assert.ok(page.jobs.length <= 4)
    seen.push(...page.jobs.map(({ id }) => id))
    after = page.next
  } while (after !== undefined)
  const byIdDescending = (some: string[]) => some.sort().reverse()
  assert.deepEqual(seen, [...byIdDescending(ids.slice(20)), ...byIdDescending(ids.slice(0, 20))])
})

test('a failed job is shown with its stack and its payload', async (t) => {
  const { find, fail } = await open(t)
  const id = await fail({ externalIds: ['a', 'b'], reason: 'refused' })
  const job = await find(id)
  assert.deepEqual([job?.id, job?.reason, job?.attempts], [id, 'refused', 1])
  assert.match(job?.stack[0] ?? '', /refused\n\s+at /)
  assert.equal(Object(job?.payload).threads.length, 2)
  for (const other of [newJobId(), 'failed', 'meta', ''])
    assert.equal(await find(other), undefined, other)
})

test('failed jobs whose payload another program added or changed are listed, grouped and shown beside others', async (t) => {
  const { failedJobs, fail, find, keys, redis } = await open(t)
  const id = await fail({ externalIds: ['a', 'b'] })
  const other = await fail({})
  const lane = keys.jobs.interactive
  await redis.hset(`${lane}1`, { name: 'n', data: '{"some":"thing"}', failedReason: 'no' })
  await redis.zadd(`${lane}failed`, Date.now(), '1')
  await redis.hset(lane + id, 'data', '{')
  const { jobs } = await failedJobs.list({ filter: {}, limit: 10 })
  assert.deepEqual(
    jobs.map((job) => [job.id, job.threads]),
    [
      ['1', 0],
      [other, 1],
      [id, 2],
    ],
  )
  assert.equal((await failedJobs.groups({})).groups[0]?.jobs, 3)
  assert.equal((await find('1'))?.reason, 'no')
  assert.deepEqual([await find('2'), await find('meta')], [undefined, undefined])
  for (const data of ['{', 'null']) {
    await redis.hset(lane + id, 'data', data)
    assert.deepEqual(
      [(await find(id))?.name, (await find(id))?.threads],
      ['slack/a … slack/b (2)', 0],
    )
  }
  await redis.hdel(lane + id, 'data')
  assert.equal((await find(id))?.reason, 'no')
})

test('a retried job waits with its data as it was and has all its attempts again', async (t) => {
  const { failedJobs, fail, queues, fetch, redis, keys } = await open(t)
  const id = await fail({})
  // As if it had used up all attempts: four that failed and one crash.
  await redis.hset(keys.jobs.interactive + id, {
    atm: 4,
    stc: 3,
    progress: JSON.stringify({ tries: 5, crashes: 1 }),
  })
  const before = await redis.hget(keys.jobs.interactive + id, 'data')
  assert.equal(await failedJobs.move('retry', [id, newJobId()], 'ada'), 1)
  assert.equal(await queues.interactive.getFailedCount(), 0)
  assert.equal(await redis.hget(keys.jobs.interactive + id, 'data'), before)
  const job = await queues.interactive.getJob(id)
  assert.deepEqual(
    [await job?.getState(), job?.finishedOn, job?.failedReason],
    ['waiting', undefined, undefined],
  )
  const { jobs } = await fetch('interactive', 'token', { jobs: 1, bytes: 1_000_000, isEmpty: true })
  assert.deepEqual([jobs[0]?.id, jobs[0]?.attempt], [id, 1])
  assert.equal(await failedJobs.move('retry', [id], 'ada'), 0)
})

test('a retried job has lost the result of its failure, so a caller waits for the next one', async (t) => {
  const { failedJobs, fail, redis, keys } = await open(t)
  const id = await fail({})
  const results = createResults(redis, keys)
  assert.deepEqual((await results.find([id])).get(id), { receipts: [null], failure: 'no' })
  assert.equal((await results.retainResult(id))?.failure, 'no')
  await failedJobs.move('retry', [id], 'ada')
  assert.deepEqual([...(await results.find([id]))], [[id, undefined]])
  assert.equal(await results.retainResult(id), undefined)
})

test('a job that is retried as soon as it failed gets no result of that failure', async (t) => {
  const { failedJobs, redis, keys } = await open(t)
  const imports = createImports(redis, keys)
  const results = createResults(redis, keys)
  const id = newJobId()
  await imports.open('i', { tenant: 't', received: 1, jobs: 1, failed: 0, refused: [] })
  const threads = [
    { source: { service: 'slack' as const, externalId: 'a', title: 'a' }, quotes: [] },
  ]
  const job = {
    tenant: 't',
    requestId: 'r',
    retained: false,
    import: { id: 'i', places: [0] },
    threads,
  }
  await createJobAdder(redis, keys)({ id, lane: 'bulk', job })
  await redis.hset(keys.jobs.bulk + id, 'atm', MAX_ATTEMPTS - 1)
  // Commands of one connection keep their order only if ioredis need not send the script first.
  await failedJobs.move('retry', [newJobId()], 'ada')
  const source = {
    outcome: 'created' as const,
    wordCount: 1,
    createdAt: '2024-05-01T00:00:00.000Z',
  }
  const receipts = [{ source, outcomes: '' }]
  const seen = Promise.withResolvers<unknown[]>()
  const finish = Promise.withResolvers<void>()
  let tries = 0
  const consumer = consume(keys, redis, {
    async work() {
      if (++tries === 1) throw new Error('the last attempt fails')
      seen.resolve([(await results.find([id])).get(id), (await imports.find('i'))?.done])
      await finish.promise
      return { receipts }
    },
    onFailed: () => void failedJobs.move('retry', [id], 'ada'),
  })
  t.onTestFinished(() => consumer.close(1_000))
  assert.deepEqual(await seen.promise, [undefined, true])
  finish.resolve()
  await vi.waitFor(
    async () => assert.deepEqual((await results.find([id])).get(id), { receipts }),
    HANG_MS,
  )
  const { done, counts } = (await imports.find('i')) ?? {}
  assert.deepEqual([done, counts?.created, counts?.failed], [true, 1, 0])
})

test('a job keeps its failed attempts and threads, and each stored thread counts once, by a retry as well', async (t) => {
  const { find, failedJobs, redis, keys } = await open(t)
  const id = newJobId()
  const threads = ['a', 'b', 'c'].map((externalId) => ({
    source: { service: 'slack' as const, externalId, title: 'T' },
    quotes: [],
  }))
  await createJobAdder(
    redis,
    keys,
  )({ id, lane: 'bulk', job: { tenant: 't', requestId: 'r', retained: false, threads } })
  await redis.hset(keys.jobs.bulk + id, 'atm', MAX_ATTEMPTS - 2)
  const receipt = (outcome: 'created' | 'unchanged') => ({
    source: { outcome, wordCount: 1, createdAt: '2024-05-01T00:00:00.000Z' },
    outcomes: '',
  })
  const cause = new TypeError('b is broken')
  const failedThreads = [{ place: 1, service: 'slack', externalId: 'b', reason: 'x'.repeat(1_000) }]
  const counted: string[] = []
  let isMended = false
  const consumer = consume(keys, redis, {
    async work() {
      if (isMended) return { receipts: threads.map(() => receipt('unchanged')) }
      const receipts = [receipt('created'), null, receipt('created')]
      throw new PartlyStoredError('b failed', failedThreads, receipts, cause)
    },
    stored: { inc: ({ outcome }) => void counted.push(outcome) },
  })
  t.onTestFinished(() => consumer.close(1_000))
  const job = await vi.waitFor(async () => {
    const found = await find(id)
    assert(found !== undefined && counted.length === 2)
    return found
  }, HANG_MS)
  assert.deepEqual(
    job.tries.map(({ worker, reason }) => [worker, reason]),
    [1, 2].map(() => ['here:1', 'b failed']),
  )
  assert.ok((job.tries[0]?.at ?? '') < (job.tries[1]?.at ?? ''))
  assert.deepEqual(job.failedThreads, [{ ...failedThreads[0], reason: `${'x'.repeat(300)}…` }])
  assert.equal(job.failedThreadCount, 1)
  assert.match(job.stack.at(-1) ?? '', /^TypeError: b is broken\n/)
  const readState = createReadState(redis, keys)
  /** The failed threads by list, groups and overview, and what the load has of them. */
  async function failedCounts() {
    const [{ jobs }, { groups }] = [
      await failedJobs.list({ filter: {}, limit: 9 }),
      await failedJobs.groups({}),
    ]
    const { queued } = await readState()
    const state = queued.find(({ lane, state }) => lane === 'bulk' && state === 'failed')
    return [
      jobs[0]?.failedThreadCount,
      groups[0]?.threads,
      state?.threads,
      await redis.hget(`${keys.base}load`, `failed:${keys.jobs.bulk}`),
    ]
  }
  await vi.waitFor(async () => assert.deepEqual(await failedCounts(), [1, 1, 1, '1']), HANG_MS)
  isMended = true
  await failedJobs.move('retry', [id], 'ada')
  await vi.waitFor(() => assert.equal(counted.length, 3), HANG_MS)
  assert.deepEqual(counted, ['created', 'created', 'unchanged'])
  assert.deepEqual(await failedCounts(), [undefined, undefined, 0, '0'])
})

test("an operator's retry is a row between the attempts, and all attempts of the job are counted and listed", async (t) => {
  const { find, failedJobs, fail, fetch, failFetched, redis, keys } = await open(t)
  const id = await fail({ externalIds: ['a', 'b'] })
  const key = keys.jobs.interactive + id
  await failedJobs.move('retry', [id], 'ada')
  await fetch('interactive', 'token', { jobs: 1, bytes: 1_000_000, isEmpty: true })
  const recordAttempt = createRecordAttempt(redis, keys, {
    name: 'here:2',
    failedBytes: 1_000_000,
    onEvicted: assert.fail,
    onError: assert.fail,
  })
  await recordAttempt({ ...completed(id), token: 'token' }, new Error('"retriedBy":"eve"'), [])
  await redis.hset(key, 'atm', 1)
  await failFetched(id, {}, 'again')
  const job = await find(id)
  assert(job)
  assert.deepEqual(
    job.tries.map(({ retriedBy, worker }) => retriedBy ?? worker),
    ['here:1', 'ada', 'here:2', 'here:1'],
  )
  assert.deepEqual([job.attempts, unlistedAttempts(job)], [3, 0])
  const { jobs } = await failedJobs.list({ filter: {}, limit: 1 })
  // No thread is known to have been stored, so both failed.
  assert.deepEqual([jobs[0]?.attempts, jobs[0]?.failedThreadCount], [3, 2])
  // A worker died in the last attempt.
  await redis.hset(key, 'atm', 3)
  assert.equal(unlistedAttempts((await find(id)) ?? assert.fail()), 1)
})

test('a thread that was stored keeps its receipt and does not count again, whichever threads fail after a retry', async (t) => {
  const { failedJobs, find, redis, keys } = await open(t)
  const id = newJobId()
  const threads = ['a', 'b'].map((externalId) => ({
    source: { service: 'slack' as const, externalId, title: 'T' },
    quotes: [],
  }))
  const job = { tenant: 't', requestId: 'r', retained: false, threads }
  await createJobAdder(redis, keys)({ id, lane: 'bulk', job })
  /**
   * Runs the job's last attempt, which stores these threads, or throws, and returns which threads
   * count.
   */
  async function countedBy(stored: readonly boolean[], fault?: Error) {
    const { earlier = 0 } = JSON.parse((await redis.hget(keys.jobs.bulk + id, 'progress')) ?? '{}')
    await redis.hset(keys.jobs.bulk + id, 'atm', earlier + MAX_ATTEMPTS - 1)
    const newReceipts = stored.map((isStored, at) => {
      const outcome = at === 0 ? 'created' : 'updated'
      const source = { outcome, wordCount: 1, createdAt: '2024-05-01T00:00:00.000Z' } as const
      return isStored ? { source, outcomes: '' } : null
    })
    const counted: string[] = []
    const begun = Promise.withResolvers<void>()
    const consumer = consume(keys, redis, {
      async work({ receiptsBefore = [] }) {
        begun.resolve()
        if (fault) throw fault
        const receipts = newReceipts.map((receipt, at) => receipt ?? receiptsBefore[at] ?? null)
        if (receipts.includes(null)) throw new PartlyStoredError('no', [], receipts, undefined)
        return { receipts: receipts.flatMap((receipt) => receipt ?? []) }
      },
      stored: { inc: ({ outcome }) => void counted.push(outcome === 'created' ? 'a' : 'b') },
    })
    await begun.promise
    await consumer.close(10_000)
    const failed = (await find(id))?.failedThreads.map(({ externalId }) => externalId)
    await failedJobs.move('retry', [id], 'ada')
    return { counted, failed }
  }
  assert.deepEqual((await countedBy([true, false])).counted, ['a'])
  assert.deepEqual((await countedBy([false, false])).counted, [])
  // As after a crash of the worker, which names no threads.
  assert.deepEqual(await countedBy([false, false], new Error('crashed')), {
    counted: [],
    failed: ['b'],
  })
  assert.deepEqual(await countedBy([false, true]), { counted: ['b'], failed: undefined })
})

test('the failed attempts and threads of a job have a bound in bytes', async (t) => {
  const { find, fail, redis, keys } = await open(t)
  const id = await fail({})
  const token = 'token'
  await redis.set(`${keys.jobs.interactive}${id}:lock`, token)
  const locked = { ...completed(id), token, digests: [], redelivered: false, quarantined: false }
  const job = { ...locked, waitsSince: 0, suppressions: '', bytes: 0, progress: {} }
  const recordAttempt = createRecordAttempt(redis, keys, {
    name: 'here:1',
    failedBytes: 1_000_000,
    onEvicted: () => {},
    onError: assert.fail,
  })
  const failed = Array.from({ length: 50 }, (_, place) => ({
    place,
    service: 'slack',
    externalId: `${place}${'ä'.repeat(200)}`,
    reason: 'no',
  }))
  for (let at = 0; at < 30; at++)
    await recordAttempt(job, new Error(`${at} ${'x'.repeat(400)}`), failed)
  await assert.rejects(
    recordAttempt({ ...job, token: 'of another worker' }, new Error('late'), []),
    /lock/,
  )
  const fields = await redis.hmget(keys.jobs.interactive + id, 'tries', 'failedThreads')
  assert.ok(fields.every((text) => text !== null && Buffer.byteLength(text) <= 4_200))
  const { tries = [], failedThreads = [], failedThreadCount } = (await find(id)) ?? {}
  assert.match(tries.at(-1)?.reason ?? '', /^29 /)
  assert.ok(tries.length >= 8 && tries.length <= 12, `${tries.length}`)
  assert.ok(failedThreads.length > 5 && failedThreads.length < 20, `${failedThreads.length}`)
  assert.equal(failedThreadCount, 50)
})

test('a worker that lost the lock of a job does not fail the job', async (t) => {
  const { failedJobs, fail, fetch, failFetched, redis, keys } = await open(t)
  const imports = createImports(redis, keys)
  await imports.open('i', { tenant: 'acme', received: 1, jobs: 1, failed: 0, refused: [] })
  const id = await fail({})
  assert.equal(await failedJobs.move('retry', [id], 'ada'), 1)
  await fetch('interactive', 'token', { jobs: 1, bytes: 1_000_000, isEmpty: true })
  const seen = async () => [
    await redis.hgetall(keys.jobs.interactive + id),
    await createReadLoad(redis, keys)(),
    await imports.find('i'),
    await redis.keys(`${keys.base.replace('{', '\\{')}*`),
  ]
  const before = await seen()
  const data = { tenant: 'acme', import: { id: 'i', places: [0] }, replyTo: 'replica' }
  await assert.rejects(failFetched(id, { data, token: 'of another worker' }), /lock/)
  assert.deepEqual(await seen(), before)
  await failFetched(id, { data })
  assert.equal((await imports.find('i'))?.done, true)
})

test('a retried job counts as load as soon as it waits, and once', async (t) => {
  const { failedJobs, fail, fetch, redis, keys } = await open(t)
  const readLoad = createReadLoad(redis, keys)
  const first = await fail({ externalIds: ['a', 'b'] })
  const other = await fail({})
  assert.equal((await readLoad()).threads, 0)
  assert.equal(await failedJobs.move('retry', [first, other, other], 'ada'), 2)
  assert.equal((await readLoad()).threads, 3)
  assert.deepEqual((await redis.hkeys(`${keys.base}load:jobs`)).sort(), [first, other].sort())
  assert.equal(await tenantThreads(redis, keys, 'acme'), 3)
  await fetch('interactive', 'token', { jobs: 2, bytes: 1_000_000, isEmpty: true })
  assert.equal((await readLoad()).threads, 3)
})

test('an operation counts which of its jobs were stored and which failed again, and lists these', async (t) => {
  const { failedJobs, fail, fetch, failFetched, complete, redis, keys } = await open(t)
  const operations = createOperations(redis, keys)
  const operation = await operations.open('retry', { filter: {} }, 3, 'ada')
  const ids = [
    await fail({ externalIds: ['a'] }),
    await fail({ externalIds: ['b'] }),
    await fail({ externalIds: ['c'] }),
  ]
  const retryAll = async ({ id }: { id: string }) => {
    await failedJobs.move('retry', ids, 'ada', id)
    const { jobs } = await fetch('interactive', 'token', {
      jobs: 3,
      bytes: 1_000_000,
      isEmpty: true,
    })
    return jobs
  }
  const [first, second] = await retryAll(operation)
  assert(first !== undefined && second !== undefined)
  const stored = [{ ...first, result: { receipts: [null] } }]
  await complete(stored)
  await complete(stored)
  await failFetched(second.id, { progress: second.progress })
  const found = await operations.find(operation.id)
  assert.deepEqual([found?.stored, found?.failedAgain], [1, 1])
  const again = async (id: string) =>
    (await failedJobs.list({ filter: { operation: id }, limit: 10 })).jobs.map((job) => job.id)
  assert.deepEqual(await again(operation.id), [second.id])
  const later = await operations.open('retry', { ids }, 3, 'ada')
  await retryAll(later)
  assert.deepEqual(await again(operation.id), [])
  // The counts end with the operation.
  await redis.del(`${keys.base}operation:${later.id}`)
  await failFetched(second.id, { progress: { operation: later.id } })
  assert.equal(await redis.exists(`${keys.base}operation:${later.id}`), 0)
  assert.deepEqual(await again(later.id), [second.id])
})

test('a retry wakes an idle worker, and leaves a paused lane alone', async (t) => {
  const { failedJobs, fail, queues, redis, keys } = await open(t)
  const [one, other] = [await fail({}), await fail({})]
  await redis.del(keys.markers.interactive)
  await queues.interactive.pause()
  await failedJobs.move('retry', [one], 'ada')
  assert.equal(await redis.exists(keys.markers.interactive), 0)
  await queues.interactive.resume()
  await redis.del(keys.markers.interactive)
  await failedJobs.move('retry', [other], 'ada')
  assert.equal(await redis.exists(keys.markers.interactive), 1)
})

test('a discarded job leaves nothing behind', async (t) => {
  const { failedJobs, fail, redis, keys } = await open(t)
  const id = await fail({ lane: 'bulk' })
  const kept = await fail({})
  assert.equal(await failedJobs.move('discard', [id], 'ada'), 1)
  const left = await redis.keys(`${keys.prefix.replace('{', '\\{')}*${id}*`)
  assert.deepEqual(left, [])
  assert.deepEqual(await redis.zrange(`${keys.base}failures:age`, '0', '-1'), [kept])
  assert.deepEqual(await redis.hkeys(`${keys.base}load:jobs`), [])
  const sizes = await redis.zrange(`${keys.base}failures:bytes`, '0', '-1', 'WITHSCORES')
  assert.deepEqual(sizes, [kept, await redis.get(`${keys.base}failures`)])
  assert.equal(await failedJobs.move('discard', [id], 'ada'), 0)
})

test('a job that waits or is active is neither retried nor discarded', async (t) => {
  const { failedJobs, fail, queues } = await open(t)
  const id = await fail({})
  await failedJobs.move('retry', [id], 'ada')
  assert.equal(await failedJobs.move('discard', [id], 'ada'), 0)
  assert.equal(await queues.interactive.getWaitingCount(), 1)
})
