import assert from 'node:assert/strict'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { it, vi } from 'vitest'
import { createEnqueuer } from '../enqueue/enqueue.ts'
import { newJobId } from '../job/job.ts'
import { queueKeys } from '../job/lanes.ts'
import { BOUNDS, completed, createCompleteJobs, createJobAdder } from '../queue.test-support.ts'
import { createResults, createRetainLater, findJob } from './results.ts'

it('finds a job without its payload, and for another tenant as little as for an unknown id', async (t) => {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const keys = queueKeys(testQueueName())
  const { queues } = createEnqueuer(keys, redis, UNBOUNDED)
  const results = createResults(redis, keys)
  const id = newJobId()
  const source = { service: 'custom', externalId: 'a', title: 'x'.repeat(1_000_000) } as const
  const data = { tenant: 'acme', requestId: 'r', retained: true, threads: [{ source, quotes: [] }] }
  await createJobAdder(redis, keys)({ id, lane: 'bulk', job: data })
  const find = (tenant: string, job = id) => findJob(queues, results, tenant, job)
  async function bytesFor(tenant: string, job?: string): Promise<number> {
    const before = redis.stream.bytesRead
    await find(tenant, job)
    return redis.stream.bytesRead - before
  }
  async function isSmall(): Promise<void> {
    assert.equal(await find('globex'), undefined)
    await bytesFor('acme') // sends the scripts
    assert.ok((await bytesFor('acme')) < 1_000)
    assert.ok((await bytesFor('globex')) < 200)
    assert.ok((await bytesFor('globex', newJobId())) < 200)
  }
  await isSmall()
  const waiting = await find('acme')
  assert.deepEqual([waiting?.state, waiting?.attempts], ['waiting', 0])
  const done = completed(id, { lane: 'bulk', attempt: 2, data: { ...data, stamp: 1 } })
  await createCompleteJobs(redis, keys, BOUNDS)([done])
  await isSmall()
  const found = await find('acme')
  assert.deepEqual([found?.state, found?.attempts], ['completed', 2])
  assert.ok(found !== undefined && found.bytes > 1_000_000)
})

const payload = { tenant: 'acme', threads: [] }
const RETAIN_AGAIN_MS = 500

it('tries until Redis answers, and retains each job with its payload', async (t) => {
  vi.useFakeTimers()
  t.onTestFinished(() => void vi.useRealTimers())
  let isUnavailable = true
  const retained: unknown[] = []
  const retainLater = createRetainLater({
    async retainResult(...args) {
      if (isUnavailable) throw new Error('unavailable')
      retained.push(args)
      return undefined
    },
  })
  retainLater('a', payload)
  retainLater('b', payload)
  await vi.advanceTimersByTimeAsync(3 * RETAIN_AGAIN_MS)
  isUnavailable = false
  await vi.advanceTimersByTimeAsync(2 * RETAIN_AGAIN_MS)
  assert.deepEqual(retained, [
    ['a', JSON.stringify(payload), 'acme'],
    ['b', JSON.stringify(payload), 'acme'],
  ])
})

it('keeps payloads within a bound of memory, and the ids beyond it', async () => {
  const datas: (string | undefined)[] = []
  const retainLater = createRetainLater({
    async retainResult(_, data) {
      datas.push(data)
      return undefined
    },
  })
  const done = vi.waitUntil(() => datas.length === 3)
  const large = { tenant: 'x'.repeat(20 * 1024 * 1024), threads: [] }
  for (const jobId of ['a', 'b']) retainLater(jobId, large)
  retainLater('c', payload)
  await done
  assert.deepEqual(
    datas.map((data) => data?.length),
    [JSON.stringify(large).length, 0, JSON.stringify(payload).length],
  )
})
