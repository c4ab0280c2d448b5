import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connectFailFast } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { type TestContext, test, vi } from 'vitest'
import { createSessions } from './sessions.ts'

const MINUTE_MS = 60_000
const ada = { role: 'operator', by: 'ada@here' } as const

async function open(t: TestContext) {
  const redis = connectFailFast({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  await once(redis, 'ready')
  const keys = queueKeys(testQueueName())
  const all = () => redis.keys(`${keys.base}*`)
  t.onTestFinished(async () => {
    const left = await all()
    if (left.length > 0) await redis.del(left)
    redis.disconnect()
  })
  return { redis, sessions: createSessions(redis, keys), all }
}

test('a link opens one session, and is gone after ten minutes', async (t) => {
  const { redis, sessions, all } = await open(t)
  const token = await sessions.createLink(ada)
  const [key = ''] = await all()
  assert.ok((await redis.pttl(key)) <= 10 * MINUTE_MS)
  assert.deepEqual(await sessions.useLink(token), ada)
  assert.equal(await sessions.useLink(token), undefined)
  assert.equal(await sessions.useLink('*'), undefined)
})

test('a session ends after eight hours, after half an hour without a visit, and when it is closed', async (t) => {
  const { redis, sessions, all } = await open(t)
  const token = await sessions.open(ada)
  const [key = ''] = await all()
  assert.equal(key.includes(token), false)
  await redis.pexpire(key, MINUTE_MS)
  assert.equal((await sessions.find(token, false))?.by, ada.by)
  assert.ok((await redis.pttl(key)) <= MINUTE_MS, 'a refreshed page is no visit')
  assert.equal((await sessions.find(token, true))?.by, ada.by)
  const left = await redis.pttl(key)
  assert.ok(left > 29 * MINUTE_MS && left <= 30 * MINUTE_MS, `${left}`)

  vi.useFakeTimers({ now: Date.now() + 8 * 60 * MINUTE_MS, toFake: ['Date'] })
  t.onTestFinished(() => void vi.useRealTimers())
  assert.equal(await sessions.find(token, true), undefined)
  vi.useRealTimers()
  await sessions.close(token)
  assert.equal(await sessions.find(token, true), undefined)
})
