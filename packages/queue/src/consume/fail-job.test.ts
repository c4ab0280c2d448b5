import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { it, vi } from 'vitest'
import { createEnqueuer } from '../enqueue/enqueue.ts'
import { createImports } from '../imports/imports.ts'
import { TRIES } from '../job/job.ts'
import { queueKeys } from '../job/lanes.ts'
import { consume, createReadLoad } from '../queue.test-support.ts'
import { createResults } from '../replies/results.ts'

const PROGRAM = join(import.meta.dirname, 'killed-worker.program.ts')
const thread = { source: { service: 'custom' as const, externalId: 'a', title: 'a' }, quotes: [] }

it('finishes a job that failed for good whose worker is killed before it has recorded the failure', async (t) => {
  const url = requiredUrl('REDIS_URL')
  const redis = connectRetrying({ redisUrl: url, queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const queue = testQueueName()
  const keys = queueKeys(queue)
  const imports = createImports(redis, keys)
  await imports.open('i', { tenant: 't', received: 2, jobs: 1, failed: 0, refused: [] })
  const ofImport = { import: { id: 'i', places: [0, 1] }, retained: false, threads: [thread, thread] }
  await createEnqueuer(keys, redis, UNBOUNDED).enqueue('a', 'bulk', { tenant: 't', requestId: 'r', ...ofImport })
  await redis.hset(`${keys.jobs.bulk}a`, 'atm', TRIES - 1)

  const child = spawn(process.execPath, [PROGRAM, queue, url], { stdio: 'inherit' })
  const [, signal] = await once(child, 'exit')
  assert.equal(signal, 'SIGKILL')
  assert.notEqual(await redis.zscore(keys.failed.bulk, 'a'), null)

  const errors: Error[] = []
  const consumer = consume(keys, redis, {
    work: () => Promise.reject(new Error('the job must not run again')),
    onError: (error) => errors.push(error),
  })
  t.onTestFinished(() => consumer.close(1_000))
  await vi.waitFor(async () => assert.equal((await createReadLoad(redis, keys)()).threads, 0), 60_000)
  const found = await imports.find('i')
  const { created, failed } = found?.counts ?? {}
  assert.deepEqual([found?.done, created, failed, found?.problems.map(({ index }) => index)], [true, 1, 1, [1]])
  assert(Number(await redis.zscore(`${keys.base}failures:bytes`, 'a')) > 0)
  const result = (await createResults(redis, keys).find(['a'])).get('a')
  assert.deepEqual(
    [result?.receipts[0]?.outcomes, result?.receipts[1], result?.failure],
    ['=', null, 'the last try fails'],
  )
  assert.deepEqual(errors, [])
})
