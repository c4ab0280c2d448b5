import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { it } from 'vitest'
import { createEnqueuer } from '../enqueue/enqueue.ts'
import { createImports } from '../imports/imports.ts'
import { MAX_ATTEMPTS } from '../job/job.ts'
import { queueKeys } from '../job/lanes.ts'
import { consume, createReadLoad } from '../queue.test-support.ts'
import { createResults } from '../replies/results.ts'
import { PartlyStoredError } from './end-jobs.ts'
import { createPauses } from './fetch-jobs.ts'

const thread = { source: { service: 'custom' as const, externalId: 'a', title: 'a' }, quotes: [] }
const STORED = {
  source: { outcome: 'created', wordCount: 1, createdAt: '2024-05-01T00:00:00.000Z' },
  outcomes: '=',
} as const

it('fails a job for good in one step, after which a worker may be killed', async (t) => {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const keys = queueKeys(testQueueName())
  const imports = createImports(redis, keys)
  await imports.open('i', { tenant: 't', received: 2, jobs: 1, failed: 0, refused: [] })
  const ofImport = {
    import: { id: 'i', places: [0, 1] },
    retained: false,
    threads: [thread, thread],
  }
  await createEnqueuer(keys, redis, UNBOUNDED).enqueue('a', 'bulk', {
    tenant: 't',
    requestId: 'r',
    ...ofImport,
  })
  await redis.hset(`${keys.jobs.bulk}a`, 'atm', MAX_ATTEMPTS - 1)

  // From its first change on, the job has failed, and its worker sends no other command for it.
  const failed = Promise.withResolvers<void>()
  let changes = 0
  const worker = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => worker.disconnect())
  const consumer = consume(keys, worker, {
    async work() {
      const send = worker.sendCommand.bind(worker)
      worker.sendCommand = (...args) => {
        if (JSON.stringify(args[0].args).includes('the last attempt fails')) changes += 1
        return send(...args)
      }
      throw new PartlyStoredError('the last attempt fails', [], [STORED, null], undefined)
    },
    onFailed: () => failed.resolve(),
  })
  t.onTestFinished(() => consumer.close(1_000))
  await failed.promise
  assert.equal(changes, 1)
  assert.equal((await createReadLoad(redis, keys)()).threads, 0)
  assert.notEqual(await redis.zscore(keys.failed.bulk, 'a'), null)
  const found = await imports.find('i')
  const { created, failed: lost } = found?.counts ?? {}
  assert.deepEqual(
    [found?.done, created, lost, found?.problems.map(({ index }) => index)],
    [true, 1, 1, [1]],
  )
  assert(Number(await redis.zscore(`${keys.base}failures:bytes`, 'a')) > 0)
  const result = (await createResults(redis, keys).find(['a'])).get('a')
  assert.deepEqual(
    [Object(result?.receipts[0]).outcomes, result?.receipts[1], result?.failure],
    ['=', null, 'the last attempt fails'],
  )
})

it('a job begins once the process has stopped fetching and runs no other job', async () => {
  const pauses = createPauses()
  const others = Promise.withResolvers<void>()
  let began = false
  const run = pauses.runAlone(
    () => others.promise,
    async () => {
      began = true
      assert.deepEqual([pauses.open, pauses.isRunningAlone], [1, true])
      return 'done'
    },
  )
  assert.deepEqual([pauses.open, pauses.isRunningAlone], [1, true])
  await new Promise(setImmediate)
  assert.equal(began, false)
  others.resolve()
  assert.equal(await run, 'done')
  assert.deepEqual([pauses.open, pauses.isRunningAlone], [0, false])
  await pauses.over()
})

it('other jobs run again after a job that ran alone has failed', async () => {
  const pauses = createPauses()
  const failing = pauses.runAlone(
    async () => {},
    () => Promise.reject(new Error('no')),
  )
  await assert.rejects(failing, /no/)
  assert.deepEqual([pauses.open, pauses.isRunningAlone], [0, false])
  await pauses.over()
})
