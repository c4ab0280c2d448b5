import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { requiredUrl, type TestScope } from '@sluice/test-support'
import { test, vi } from 'vitest'
import { connectRetrying } from './redis-connections.ts'

const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`
const list = (...texts: string[]) => `*${texts.length}\r\n${texts.map(bulk).join('')}`

/** Opens a Sentinel that speaks RESP 2, knows no others, and names the primary by this reply. */
async function openSentinel(t: TestScope, primary: string) {
  let received = ''
  const callers = new Set<Socket>()
  const server = createServer((socket) => {
    callers.add(socket.on('error', () => {}))
    socket.on('data', (chunk) => {
      received += chunk
      for (const [, name = ''] of String(chunk).matchAll(
        /\*\d+\r\n\$\d+\r\n([a-z]+(?:\r\n\$\d+\r\nGET)?)/gi,
      ))
        if (/get$/i.test(name)) socket.write(primary)
        else
          socket.write(
            { sentinel: '*0\r\n', hello: '-ERR unknown command HELLO\r\n' }[name.toLowerCase()] ??
              '+OK\r\n',
          )
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.onTestFinished(() => {
    for (const socket of callers) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    host: `127.0.0.1:${port}`,
    received: () => received,
    callers: () => [...callers].filter((socket) => !socket.destroyed).length,
    announce(text: string) {
      for (const socket of callers) socket.write(list('message', '+switch-master', text))
    },
  }
}

test('credentials of Sentinels may have characters that mean something elsewhere in a URL', async (t) => {
  const { host, received } = await openSentinel(t, list('127.0.0.1', 'none'))
  const redisUrl = `redis+sentinel://${host}/main?sentinelUsername=u@x&sentinelPassword=a+b@c#d%25`
  await new Promise((resolve) => {
    const redis = connectRetrying({ redisUrl, queue: '' }, resolve)
    t.onTestFinished(() => redis.disconnect())
  })
  assert.ok(received().includes(`${bulk('u@x')}${bulk('a+b@c#d%')}`), received())
})

for (const [what, reply] of [
  ['no port', list('127.0.0.1', 'none')],
  ['no host', list('', '6379')],
  ['nothing', '*-1\r\n'],
  ['no list', '+OK\r\n'],
] as const)
  test(`a Sentinel that names ${what} is asked again`, async (t) => {
    const { host } = await openSentinel(t, reply)
    const errors: string[] = []
    await new Promise<void>((resolve) => {
      const redis = connectRetrying(
        { redisUrl: `redis+sentinel://${host}/main`, queue: '' },
        ({ message }) => {
          if (errors.push(message) === 2) resolve()
        },
      )
      t.onTestFinished(() => redis.disconnect())
    })
    const expected = `nobody names the primary; asked last: ${host} (it names no address)`
    assert.deepEqual(errors, [expected, expected])
  })

test('a connection that is closed while it waits to connect again leaves none to Sentinels', async (t) => {
  const { host, callers } = await openSentinel(t, list('127.0.0.1', '1'))
  const redis = connectRetrying({ redisUrl: `redis+sentinel://${host}/main`, queue: '' }, () => {})
  await new Promise((resolve) => redis.once('reconnecting', resolve))
  await vi.waitUntil(() => callers() > 0)
  redis.disconnect()
  await vi.waitUntil(() => callers() === 0)
})

test('connections leave a primary that Sentinels announce by a name when another name replaces it', async (t) => {
  const { hostname, port } = new URL(requiredUrl('REDIS_URL'))
  const { host, announce } = await openSentinel(t, list(hostname, port))
  const redis = connectRetrying({ redisUrl: `redis+sentinel://${host}/main`, queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const closed = once(redis, 'close')
  // All servers have one port, as in Kubernetes.
  announce(`main ${hostname} ${port} redis-1.example ${port}`)
  await closed
})
