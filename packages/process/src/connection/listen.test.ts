import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { type TestContext, test, vi } from 'vitest'
import { listen } from './listen.ts'

const IDLE_MS = 200
const POST = 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n'
const GET = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'

async function open(
  t: TestContext,
  listener: RequestListener,
  text: string,
  idleMs = IDLE_MS,
  bounds = {},
) {
  const served: RequestListener = (request, response) =>
    request.url === '/idle'
      ? void request.on('error', () => {}).resume()
      : listener(request, response)
  const http = await listen(served, { port: 0, host: '127.0.0.1', idleMs, ...bounds })
  const socket = connect(http.port, '127.0.0.1').setEncoding('utf8')
  socket.on('error', () => {}) // a connection that is cut
  t.onTestFinished(() => {
    socket.destroy()
    http.cut()
    return http.close()
  })
  socket.write(text)
  return { http, socket, idleTimeIsOver: () => untilCut(http.port) }
}

/**
 * Resolves when a connection whose body stopped coming is cut, because it was idle for too long by
 * the server's clock.
 */
async function untilCut(port: number): Promise<void> {
  const idle = connect(port, '127.0.0.1')
  idle.on('error', () => {})
  idle.write(POST.replace('/', '/idle'))
  await once(idle.resume(), 'close')
}

async function until(socket: Socket, pattern: RegExp): Promise<string> {
  let seen = ''
  for await (const [text] of on(socket)) {
    seen += text
    if (pattern.test(seen)) return seen
  }
  throw new Error(`ended without ${pattern}: ${seen}`)
}

async function* on(socket: Socket): AsyncGenerator<[string]> {
  for await (const text of socket.iterator({ destroyOnReturn: false })) yield [text]
}

test('a body that moves takes longer than a connection may be idle', async (t) => {
  const { socket, idleTimeIsOver } = await open(
    t,
    async (request, response) => {
      let size = 0
      for await (const chunk of request) size += chunk.length
      response.end(`all ${size}`)
    },
    POST,
    1_000,
  )
  let sent = 0
  const sending = setInterval(() => socket.write('1\r\na\r\n', () => sent++), 20)
  t.onTestFinished(() => clearInterval(sending))
  await idleTimeIsOver()
  clearInterval(sending)
  await new Promise<void>((resolve) => socket.write('0\r\n\r\n', () => resolve()))
  assert.ok(sent >= 8, `${sent} chunks`)
  assert.match(await until(socket, new RegExp(`all ${sent}`)), /^HTTP\/1.1 200/)
})

test('a body that stops coming is cut', async (t) => {
  const { socket } = await open(
    t,
    (request) => request.on('error', () => {}).resume(),
    `${POST}1\r\na\r\n`,
  )
  await once(socket.resume(), 'close')
})

test('a caller that waits for its answer is not cut', async (t) => {
  const asked = Promise.withResolvers<ServerResponse>()
  const { socket, idleTimeIsOver } = await open(t, (_, response) => asked.resolve(response), GET)
  const response = await asked.promise
  for (let times = 0; times < 3; times++) await idleTimeIsOver()
  response.end('at last')
  assert.match(await until(socket, /at last/), /^HTTP\/1.1 200/)
})

test('a sender whose body waits for us is not cut', async (t) => {
  const came = Promise.withResolvers<void>()
  const mayRead = Promise.withResolvers<void>()
  const { socket, idleTimeIsOver } = await open(
    t,
    async (request, response) => {
      await once(request, 'readable')
      came.resolve()
      await mayRead.promise
      for await (const _ of request);
      response.end('at last')
    },
    `${POST}1\r\na\r\n`,
  )
  await came.promise
  for (let times = 0; times < 3; times++) await idleTimeIsOver()
  socket.write('0\r\n\r\n')
  await idleTimeIsOver()
  mayRead.resolve()
  assert.match(await until(socket, /at last/), /^HTTP\/1.1 200/)
})

test('a reader that reads nothing of its answer is cut', async (t) => {
  const closed = Promise.withResolvers<void>()
  const { socket } = await open(
    t,
    (_, response) => {
      response.on('close', closed.resolve).write('x'.repeat(64 * 1024 * 1024))
    },
    GET,
  )
  socket.pause()
  await closed.promise
})

test('a body that is no longer HTTP breaks off an answer that has begun', async (t) => {
  const { socket } = await open(
    t,
    (request, response) => {
      request.on('error', () => {}).resume()
      response.write('begun')
    },
    POST,
  )
  let seen = await until(socket, /begun/)
  socket.on('data', (text) => (seen += text)).write('no chunk\r\n')
  await once(socket, 'close')
  assert.doesNotMatch(seen, / 400 /)
})

test('a connection that was in use when the server closed is closed with its answer', async (t) => {
  let answer = () => {}
  const { http, socket } = await open(
    t,
    (_, response) => void response.write('begun', () => (answer = () => response.end('.'))),
    GET,
  )
  await until(socket, /begun/)
  const closing = http.close()
  answer()
  socket.resume()
  await closing
})

test('a connection that never sent a byte does not keep a server from closing', {
  timeout: 10_000,
}, async (t) => {
  const { http, socket } = await open(t, (_, response) => response.end(), '', 60_000)
  // Once a later caller is served, the server has accepted this connection too.
  await fetch(`http://127.0.0.1:${http.port}/`, { headers: { connection: 'close' } })
  const closed = once(socket.resume(), 'close')
  await http.close()
  await closed
})

test('a head that does not end in its time gets a 408, and its connection is closed', async (t) => {
  const http = await listen(() => {}, { port: 0, host: '127.0.0.1', headMs: IDLE_MS })
  t.onTestFinished(() => http.close())
  const socket = connect(http.port, '127.0.0.1').setEncoding('utf8')
  const sending = setInterval(() => socket.write('a'), IDLE_MS / 10)
  t.onTestFinished(() => clearInterval(sending))
  socket.on('error', () => {}) // what is sent after the answer
  socket.write('GET / HTTP/1.1\r\nx-slow: ')
  const seen = await until(socket, /\}$/)
  clearInterval(sending)
  assert.match(seen, /^HTTP\/1\.1 408 .*"code":"[a-z_]+"/s)
  socket.end()
})

test('a caller that waits for a result before it sends on may idle while the result is awaited', async (t) => {
  for (const [waitSeconds, idleMs] of [
    [30, 120_000],
    [60, 180_000],
  ] as const) {
    const asked = Promise.withResolvers<IncomingMessage>()
    const http = await listen((request) => asked.resolve(request), {
      port: 0,
      host: '127.0.0.1',
      waitSeconds,
    })
    t.onTestFinished(() => {
      http.cut()
      return http.close()
    })
    connect(http.port, '127.0.0.1')
      .on('error', () => {})
      .write(POST)
    assert.equal((await asked.promise).socket.timeout, idleMs)
  }
})

test('no request is handled while another one of its connection is, and none behind the last answer', async (t) => {
  const urls: (string | undefined)[] = []
  const { socket } = await open(
    t,
    (request, response) => {
      urls.push(request.url)
      setImmediate().then(() => {
        assert.equal(urls.at(-1), request.url)
        response
          .writeHead(200, request.url === '/3' ? { connection: 'close' } : {})
          .end(`${request.url}.`)
      })
    },
    Array.from({ length: 10 }, (_, at) => GET.replace('/', `/${at}`)).join(''),
  )
  await once(socket.resume(), 'close')
  assert.deepEqual(urls, ['/0', '/1', '/2', '/3'])
})

test('a body that nobody reads is not received, beyond what buffers have room for', async (t) => {
  const asked = Promise.withResolvers<IncomingMessage>()
  const { http, socket } = await open(
    t,
    (request, response) =>
      request.method === 'GET' ? void response.end() : asked.resolve(request),
    'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 50000000\r\n\r\n',
    60_000,
  )
  socket.write(Buffer.alloc(50_000_000))
  const request = await asked.promise
  // Reading some of it makes the system's buffers large enough for whole reads of 64 KiB.
  for (let read = 0; read < 10_000_000; ) {
    const chunk: Buffer | null = request.read()
    if (chunk === null) await once(request, 'readable')
    else read += chunk.length
  }
  const before = request.socket.bytesRead
  for (let times = 0; times < 100; times++)
    await (await fetch(`http://127.0.0.1:${http.port}/`)).text()
  assert.ok(
    request.socket.bytesRead - before < 1_000_000,
    `${request.socket.bytesRead - before} bytes`,
  )
  request.resume()
  await once(request, 'end')
  assert.ok(request.socket.bytesRead >= 50_000_000)
})

test('a caller that waits for each answer is served on, however much others send', async (t) => {
  const bounds = { maxPendingBytes: 0 }
  const { socket } = await open(t, (_, response) => void response.end('done'), GET, 60_000, bounds)
  for (let times = 0; times < 3; times++) {
    await until(socket, /done/)
    socket.write(GET)
  }
})

test('a server that stops serves on, unless nobody is connected and nobody called for five seconds', async (t) => {
  vi.useFakeTimers({ toFake: ['performance'] })
  t.onTestFinished(() => void vi.useRealTimers())
  const http = await listen((_, response) => void response.end(), { port: 0, host: '127.0.0.1' })
  t.onTestFinished(() => http.close())
  const next = () =>
    Promise.race([http.linger(1_000).then(() => 'stops'), setImmediate('serves on')])
  assert.equal(await next(), 'stops')

  const socket = connect(http.port, '127.0.0.1').resume()
  socket.write(GET)
  while (http.connections() === 0) await setImmediate()
  assert.equal(await next(), 'serves on')
  await once(socket, 'data')
  vi.advanceTimersByTime(60_000)
  assert.equal(await next(), 'serves on')
  socket.destroy()
  while (http.connections() > 0) await setImmediate()
  assert.equal(await next(), 'stops')

  await (await fetch(`http://127.0.0.1:${http.port}`, { headers: { connection: 'close' } })).text()
  while (http.connections() > 0) await setImmediate()
  vi.advanceTimersByTime(5_000)
  assert.equal(await next(), 'serves on')
  vi.advanceTimersByTime(1)
  assert.equal(await next(), 'stops')
})

test('a request that arrived while the process was not scheduled is answered before its connection is closed', async (t) => {
  const { http, socket } = await open(t, (_, response) => void response.end('answer'), GET)
  await until(socket, /answer/)
  const closed = http.linger(10).then(() => http.close())
  socket.write(GET)
  // The time is over before the process reads again.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
  await until(socket, /answer/)
  await closed
})
