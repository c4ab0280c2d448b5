import assert from 'node:assert/strict'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { it, type TestContext } from 'vitest'
import { connectPatient } from './connect-redis.ts'
import { createSleeper } from './sleeper.ts'

const LATER = Number.POSITIVE_INFINITY

async function setUp(t: TestContext) {
  const redis = connectPatient(requiredUrl('REDIS_URL'), () => {})
  const marker = `${testQueueName()}:marker`
  const waker = connectPatient(requiredUrl('REDIS_URL'), () => {})
  const sleeper = createSleeper(redis, marker, () => {})
  const monitor = await redis.monitor()
  // Redis tells of a command when it has done it, or has blocked the connection for it.
  const asleep = new Promise<void>((resolve) => {
    monitor.on('monitor', (_: string, [command, key]: string[]) => {
      if (command?.toLowerCase() === 'bzpopmin' && key === marker) resolve()
    })
  })
  t.onTestFinished(async () => {
    await waker.del(marker, `${marker}:value`)
    waker.disconnect()
    monitor.disconnect()
    redis.disconnect()
    sleeper.redis.disconnect()
  })
  return {
    sleeper,
    setMarker: () => waker.zadd(marker, 0, '0'),
    setValue: (value: string) => waker.set(`${marker}:value`, value),
    readValue: () => sleeper.redis.get(`${marker}:value`),
    /** Resolves when its connection is blocked, as Redis sees it. */
    asleep: () => asleep,
  }
}

it('does what comes after the sleep as soon as the marker is set, and not before', async (t) => {
  const { sleeper, setMarker, setValue, readValue, asleep } = await setUp(t)
  const woken = sleeper.sleep(LATER, readValue)
  await asleep()
  await setValue('set while it slept')
  await setMarker()
  assert.equal(await woken, 'set while it slept')
})

it('sleeps no longer than it is told', async (t) => {
  const { sleeper, setValue, readValue } = await setUp(t)
  await setValue('there all the time')
  assert.equal(await sleeper.sleep(Date.now() + 20, readValue), 'there all the time')
})

it('gives what Redis has done for it also where it is woken to stop', async (t) => {
  const { sleeper, setValue, readValue, asleep } = await setUp(t)
  const woken = sleeper.sleep(LATER, readValue)
  await asleep()
  await setValue('done')
  await sleeper.wake()
  assert.equal(await woken, 'done')
})

it('ends where it is woken to stop before it ever slept', async (t) => {
  const { sleeper } = await setUp(t)
  await sleeper.wake()
  await assert.rejects(sleeper.sleep(LATER, () => sleeper.redis.get('anything')))
})
