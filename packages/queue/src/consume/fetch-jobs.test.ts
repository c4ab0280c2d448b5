import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { it, type TestContext } from 'vitest'
import { createBlockingWait } from './fetch-jobs.ts'

const LATER = Number.POSITIVE_INFINITY

async function setUp(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  const marker = `${testQueueName()}:marker`
  const waker = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  const blocking = createBlockingWait(redis, marker, () => {})
  const id = await blocking.redis.client('ID')
  t.onTestFinished(async () => {
    await waker.del(marker, `${marker}:value`)
    waker.disconnect()
    redis.disconnect()
    blocking.redis.disconnect()
  })
  return {
    blocking,
    setMarker: () => waker.zadd(marker, 0, '0'),
    setValue: (value: string) => waker.set(`${marker}:value`, value),
    readValue: () => blocking.redis.get(`${marker}:value`),
    /** Resolves when its connection is blocked, as Redis sees it. */
    async blocked() {
      while (!/ flags=b /.test(String(await waker.client('LIST', 'ID', id))));
    },
  }
}

it('runs the command after the wait as soon as the marker is set, and not before', async (t) => {
  const { blocking, setMarker, setValue, readValue, blocked } = await setUp(t)
  const woken = blocking.wait(LATER, readValue)
  await blocked()
  await setValue('set during the wait')
  await setMarker()
  assert.equal(await woken, 'set during the wait')
})

it('waits no longer than asked', async (t) => {
  const { blocking, setValue, readValue } = await setUp(t)
  await setValue('there all the time')
  assert.equal(await blocking.wait(Date.now() + 20, readValue), 'there all the time')
})

it('returns the result of the command also if the wait is stopped', async (t) => {
  const { blocking, setValue, readValue, blocked } = await setUp(t)
  const woken = blocking.wait(LATER, readValue)
  await blocked()
  await setValue('done')
  await blocking.stop()
  assert.equal(await woken, 'done')
})

it('ends if it is stopped before it ever waited', async (t) => {
  const { blocking } = await setUp(t)
  await blocking.stop()
  await assert.rejects(blocking.wait(LATER, () => blocking.redis.get('anything')))
})

it('ends if it is stopped while its connection is being made again', async (t) => {
  const wire = createServer((socket) => {
    const { hostname, port } = new URL(requiredUrl('REDIS_URL'))
    const onward = connect(Number(port), hostname)
    socket
      .on('error', () => {})
      .pipe(onward.on('error', () => {}))
      .pipe(socket)
    wire.once('close', () => {
      socket.destroy()
      onward.destroy()
    })
  }).listen(0, '127.0.0.1')
  await once(wire, 'listening')
  const address = wire.address()
  assert.ok(typeof address === 'object' && address !== null)
  const redis = connectRetrying(
    { redisUrl: `redis://127.0.0.1:${address.port}`, queue: '' },
    () => {},
  )
  t.onTestFinished(() => redis.disconnect())
  const blocking = createBlockingWait(redis, `${testQueueName()}:marker`, () => {})
  await once(blocking.redis, 'ready')
  const woken = blocking.wait(LATER, () => blocking.redis.get('anything'))
  const again = new Promise((resolve) => blocking.redis.once('reconnecting', resolve))
  wire.close().emit('close')
  await again
  await Promise.all([assert.rejects(woken, { message: 'the wait was stopped' }), blocking.stop()])
})
