import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { requiredUrl } from '@sluice/test-support'
import { it, vi } from 'vitest'
import { connectFailFast, connectRetrying, watchRedis } from './redis-connections.ts'

const FIT = 'maxmemory:0\r\ntotal_system_memory:4000\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n'

it('checks Redis every minute, and reports a fault once until it is fixed', async (t) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  t.onTestFinished(() => void vi.useRealTimers())
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  let info = FIT
  const asked = vi.spyOn(redis, 'info').mockImplementation(async () => info)
  const faults: string[] = []
  await watchRedis(redis, { redisChecks: 'warn', minRedisMemory: 3_000 }, (fault) => void faults.push(fault))
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

for (const [kind, reason] of [
  ['cluster', /^nobody names the primary; asked last: \S+:\d+ \(.*cluster support disabled\)$/],
  ['sentinel', /^nobody names the primary; asked last: \S+:\d+ \(.*unknown command.*SENTINEL.*\)$/i],
] as const)
  it(`says why nobody names the primary (${kind})`, async (t) => {
    const redisUrl = requiredUrl('REDIS_URL').replace(/^redis:\/\/([^/]*).*/, `redis+${kind}://$1/0`)
    const error = await new Promise((resolve) => {
      const redis = connectRetrying({ redisUrl, queue: '' }, resolve)
      t.onTestFinished(() => redis.disconnect())
    })
    assert.match(String(Object(error).message), reason)
  })

it('leaves strings as fast as before ioredis was loaded', async () => {
  const module = new URL('redis-connections.ts', import.meta.url)
  const program = `await import('${module}'); console.log(%HasFastProperties(String.prototype))`
  const flags = ['--allow-natives-syntax', '--input-type=module']
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, '--eval', program])
  assert.equal(stdout, 'true\n')
})
