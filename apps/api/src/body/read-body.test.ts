import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { listen } from '@sluice/process'
import { type TestContext, test } from 'vitest'
import { ProblemError } from '../request/problem-error.ts'
import { createBudget } from '../request/shares.ts'
import { bodyChunks, readBody } from './read-body.ts'

const IDLE_MS = 200
const POST = 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n'

async function open(t: TestContext, listener: RequestListener, text: string, idleMs = IDLE_MS) {
  const http = await listen(listener, { port: 0, host: '127.0.0.1', idleMs })
  const socket = connect(http.port, '127.0.0.1').setEncoding('utf8')
  socket.on('error', () => {}) // a connection that is cut
  t.onTestFinished(() => {
    socket.destroy()
    return http.end()
  })
  socket.write(text)
  return { socket }
}

async function until(socket: Socket, pattern: RegExp): Promise<string> {
  let seen = ''
  for await (const text of socket.iterator({ destroyOnReturn: false })) {
    seen += text
    if (pattern.test(seen)) return seen
  }
  throw new Error(`ended without ${pattern}: ${seen}`)
}

test('a body of an import that stops coming is cut', async (t) => {
  const bounds = { bytes: 100, limit: 'importBytes', stop: new AbortController().signal } as const
  const read = async (request: IncomingMessage) => {
    for await (const _ of bodyChunks(request, 'identity', bounds));
  }
  const { socket } = await open(
    t,
    (request) => void read(request).catch(() => {}),
    `${POST}1\r\na\r\n`,
  )
  await once(socket.resume(), 'close')
})

test('a body is read to its end, whether it came with its head or later', async (t) => {
  const bodyBudget = createBudget({ maxBytes: 100_000, tenantShare: 1 })
  const deps = { bodyBudget, settings: { bodyBytes: 5 } }
  const { signal } = new AbortController()
  for (const [first, later] of [
    ['hello', ''],
    ['he', 'llo'],
    ['', 'hello'],
  ] as const) {
    const asked = Promise.withResolvers<void>()
    const { socket } = await open(
      t,
      async (request, response) => {
        // As long as it takes to check a key.
        await setImmediate()
        asked.resolve()
        const body = await readBody(
          { request, response, tenant: 'acme', signal, chargedBytes: 0 },
          deps,
          'identity',
        )
        response.end(`${body} ${request.readableEnded} ${bodyBudget.taken()}.`)
      },
      `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n${first}`,
      60_000,
    )
    await asked.promise
    socket.write(later)
    assert.match(await until(socket, /\.$/), /hello true 5\.$/, `${first}, ${later}`)
    // The connection serves the next request.
    socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nagain')
    assert.match(await until(socket, /\.$/), /again true 5\.$/)
  }
})

test('a body that trickles in is refused after its time', async (t) => {
  const { socket } = await open(
    t,
    (request, response) => {
      const bodyBudget = createBudget({ maxBytes: 100_000, tenantShare: 1 })
      const { signal } = new AbortController()
      const context = { request, response, tenant: 'acme', signal, chargedBytes: 0 }
      const deps = { bodyBudget, settings: { bodyBytes: 100 } }
      const read = readBody(context, deps, 'identity', IDLE_MS)
      read.catch((error) =>
        response.end(error instanceof ProblemError ? `${error.code}: ${error.members.detail}` : ''),
      )
    },
    POST,
    60_000,
  )
  const timer = setInterval(() => socket.write('1\r\na\r\n'), IDLE_MS / 5)
  t.onTestFinished(() => clearInterval(timer))
  assert.match(await until(socket, /0\.2 seconds/), /request_timeout/)
})

test('a body that arrived while the process was not scheduled is read, though its time is over', async (t) => {
  const asked = Promise.withResolvers<void>()
  const bodyBudget = createBudget({ maxBytes: 100_000, tenantShare: 1 })
  const { signal } = new AbortController()
  const { socket } = await open(
    t,
    (request, response) => {
      const context = { request, response, tenant: 'acme', signal, chargedBytes: 0 }
      const read = readBody(
        context,
        { bodyBudget, settings: { bodyBytes: 100 } },
        'identity',
        IDLE_MS,
      )
      read.then(
        (body) => response.end(`${body}.`),
        (error) => response.end(`${error.code}.`),
      )
      asked.resolve()
    },
    POST,
    60_000,
  )
  await asked.promise
  socket.write('5\r\nhello\r\n0\r\n\r\n')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1.5 * IDLE_MS)
  assert.match(await until(socket, /\.$/), /hello\.$/)
})
