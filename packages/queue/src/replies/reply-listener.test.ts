import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { type TestContext, test, vi } from 'vitest'
import type { JobResult } from '../job/job.ts'
import { queueKeys } from '../job/lanes.ts'
import { AcceptanceUnknownError } from '../load/refusals.ts'
import { openReplyListener } from './reply-listener.ts'

const RESULT: JobResult = { receipts: [null] }
const WAIT_MS = 5_000

async function open(
  t: TestContext,
  find: (ids: readonly string[]) => Promise<Map<string, JobResult | undefined>>,
) {
  const [redis, reader] = [1, 2].map(() =>
    connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {}),
  )
  assert(redis !== undefined && reader !== undefined)
  await Promise.all([redis, reader].map((one) => once(one, 'ready')))
  const keys = queueKeys(testQueueName())
  const listener = openReplyListener('r', keys, reader, { find })
  t.onTestFinished(async () => {
    await listener.close()
    redis.disconnect()
  })
  return {
    listed: () => redis.zscore(`${keys.base}replicas`, 'r'),
    reply: (...fields: string[]) => redis.xadd(`${keys.base}replies:r`, '*', ...fields),
    waitFor: (jobId: string) => listener.wait(jobId, WAIT_MS, new AbortController().signal),
    wait: (jobId: string) => listener.wait(jobId, WAIT_MS, new AbortController().signal).result,
  }
}

test('a reply is read although a large result before it in its entry cannot be looked up', async (t) => {
  const { reply, wait } = await open(t, () => Promise.reject(new Error('no')))
  const result = wait('small')
  await reply('large', '', 'small', JSON.stringify(RESULT))
  assert.deepEqual(await result, RESULT)
})

test('a deletion finds the stream of a replica whose clock is a day behind', async (t) => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 86_400_000 })
  t.onTestFinished(() => void vi.useRealTimers())
  const { listed } = await open(t, async () => new Map())
  const listedAt = await vi.waitUntil(listed)
  vi.useRealTimers()
  assert(Math.abs(Number(listedAt) - Date.now()) < 60_000, `${listedAt}`)
})

test('an overdue result is looked up although the clock was set back meanwhile', async (t) => {
  const { wait } = await open(t, async (ids) => new Map(ids.map((id) => [id, RESULT])))
  vi.useFakeTimers({ toFake: ['Date'] })
  t.onTestFinished(() => void vi.useRealTimers())
  const result = wait('a')
  vi.setSystemTime(Date.now() - 3_600_000)
  assert.deepEqual(await result, RESULT)
})

test('a caller whose job was accepted learns at once that Redis no longer knows it, and no other caller does', async (t) => {
  const { waitFor } = await open(t, async () => new Map([['known', undefined]]))
  const lost = waitFor('lost')
  lost.accepted()
  const known = waitFor('known')
  known.accepted()
  const unconfirmed = waitFor('unconfirmed')
  await assert.rejects(lost.result, AcceptanceUnknownError)
  const others = Promise.race([known.result, unconfirmed.result])
  assert.equal(await Promise.race([others, Promise.resolve('waiting')]), 'waiting')
  unconfirmed.accepted()
  await assert.rejects(unconfirmed.result, AcceptanceUnknownError)
})
