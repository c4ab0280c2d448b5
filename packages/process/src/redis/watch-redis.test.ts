import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { it, type TestContext, vi } from 'vitest'
import { connectFailFast, connectRetrying } from './redis-connections.ts'
import { watchLayout, watchRedis } from './watch-redis.ts'

async function connect(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  return redis
}

const unexpected = (error: Error) => assert.fail(error)

it('refuses a process that cannot read what a newer release has written, and no other one', async (t) => {
  const redis = await connect(t)
  const keys = { base: `{${testQueueName()}}:sluice:` }
  const watch = (layout: { writes: number; reads: number }) =>
    watchLayout(redis, keys.base, unexpected, layout)
  await watch({ writes: 1, reads: 1 })
  await watch({ writes: 1, reads: 2 })
  await watch({ writes: 2, reads: 2 })
  // The release before the change goes on to run, and a rollback to it starts.
  await watch({ writes: 1, reads: 2 })
  await assert.rejects(watch({ writes: 1, reads: 1 }), /layout 2 .* only up to 1/)
  assert.equal(await redis.get(`${keys.base}layout`), '2')
})

it('has a running process stop within five seconds, or when Redis is back', async (t) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  t.onTestFinished(() => void vi.useRealTimers())
  const [redis, newer] = [await connect(t), await connect(t)]
  for (const seen of [() => vi.advanceTimersByTimeAsync(5_000), () => redis.disconnect(true)]) {
    const keys = { base: `{${testQueueName()}}:sluice:` }
    const stopped = Promise.withResolvers<Error>()
    await watchLayout(redis, keys.base, stopped.resolve, { writes: 1, reads: 1 })
    await watchLayout(newer, keys.base, unexpected, { writes: 2, reads: 2 })
    await seen()
    assert.match((await stopped.promise).message, /layout 2 .* only up to 1/)
  }
})

const FIT =
  'maxmemory:0\r\ntotal_system_memory:4000\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n'

it('checks Redis every minute, and reports a fault once until it is fixed', async (t) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  t.onTestFinished(() => void vi.useRealTimers())
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  let info = FIT
  const asked = vi.spyOn(redis, 'info').mockImplementation(async () => info)
  const faults: string[] = []
  await watchRedis(
    redis,
    { redisChecks: 'warn', minRedisMemory: 3_000 },
    (fault) => void faults.push(fault),
  )
  async function nextMinute(text: string): Promise<void> {
    info = text
    await vi.advanceTimersByTimeAsync(60_000)
  }

  assert.deepEqual(faults, [])
  const withoutFile = FIT.replace('aof_enabled:1', 'aof_enabled:0')
  await nextMinute(withoutFile)
  await nextMinute(withoutFile)
  assert.equal(faults.length, 1)
  assert.match(faults[0] ?? '', /config set appendonly yes/)
  await nextMinute(FIT)
  await nextMinute(withoutFile.replace('maxmemory:0', 'maxmemory:2000'))
  assert.equal(faults.length, 3)
  assert.match(faults[2] ?? '', /may use 2000 bytes .* config set maxmemory 3000/)

  const ended = once(redis, 'end')
  redis.disconnect()
  await ended
  const before = asked.mock.calls.length
  await nextMinute(FIT)
  assert.equal(asked.mock.calls.length, before)
})

const INFO = 'role:master\r\nloading:1\r\nloading_eta_seconds:60\r\n'
/** Answers as Redis does while it loads its data. */
function answerLoading(socket: Socket, sent: Buffer): void {
  const commands = [...String(sent).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)]
  for (const [, name] of commands)
    socket.write(name?.toLowerCase() === 'info' ? `$${INFO.length}\r\n${INFO}\r\n` : '+OK\r\n')
}
for (const [which, answer] of [
  ['loads its data', answerLoading],
  ['closes connections', (socket: Socket) => socket.end()],
] as const)
  it(`does not wait for a Redis that ${which}`, async (t) => {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket.on('error', () => {}))
      socket.on('data', (sent) => answer(socket, sent))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = Object(server.address())
    const redis = connectFailFast({ redisUrl: `redis://127.0.0.1:${port}`, queue: '' }, () => {})
    t.onTestFinished(() => {
      redis.disconnect()
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    await watchRedis(redis, { redisChecks: 'refuse', minRedisMemory: 1 }, () => {})
    assert.notEqual(redis.status, 'ready')
  })
