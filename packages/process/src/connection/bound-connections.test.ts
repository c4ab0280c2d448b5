import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, type TestContext, test } from 'vitest'
import { listen } from './listen.ts'

const HEAD = 'GET / HTTP/1.1\r\nhost: a\r\n'
const GET = `${HEAD}\r\n`
const GET_LATER = 'GET /later HTTP/1.1\r\nhost: a\r\n\r\n'

/** A server that has room for two connections. It answers at once, except at /later. */
async function open(t: TestContext, leastIdleMs: number) {
  const served: Socket[] = []
  const later: ServerResponse[] = []
  const http = await listen(
    (request, response) => {
      if (!served.includes(request.socket)) served.push(request.socket)
      if (request.url === '/later') later.push(response)
      else response.end('served')
    },
    { port: 0, host: '127.0.0.1', maxConnections: 2, leastIdleMs },
  )
  t.onTestFinished(() => {
    http.cut()
    return http.close()
  })
  async function caller() {
    const socket = connect(http.port, '127.0.0.1')
      .setEncoding('utf8')
      .on('error', () => {})
    t.onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    const closed = once(socket, 'close').then(() => 'closed')
    return {
      closed,
      write: (text: string) => void socket.write(text),
      async get(text = GET): Promise<string> {
        socket.write(text)
        return Promise.race([closed, once(socket, 'data').then(([data]) => String(data))])
      },
    }
  }
  return { served, later, caller }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await setImmediate()
}

describe('beyond the bound of connections', () => {
  test('the one that idles longest is closed for a new one', async (t) => {
    const { caller } = await open(t, 0)
    const [first, second] = [await caller(), await caller()]
    for (const one of [first, second, first]) assert.match(await one.get(), /served/)
    const third = await caller()
    assert.match(await third.get(), /200 OK[\s\S]*served/)
    assert.equal(await second.closed, 'closed')
    assert.match(await first.get(), /served/)
  })

  test('one that was never used counts as idle', async (t) => {
    const { caller } = await open(t, 0)
    const [unused, used] = [await caller(), await caller()]
    assert.match(await used.get(), /served/)
    assert.match(await (await caller()).get(), /served/)
    assert.equal(await unused.closed, 'closed')
    assert.match(await used.get(), /served/)
  })

  test('none with a request in progress is closed', async (t) => {
    const { caller, later } = await open(t, 0)
    const busy = [await caller(), await caller()]
    for (const one of busy) one.write(GET_LATER)
    await until(() => later.length === 2)
    assert.match(await (await caller()).get(), /503 [\s\S]*"code":"overloaded"/)
  })

  /**
   * Opens two connections that were served. A head has begun to arrive on `sending`, the older one.
   */
  async function openWithHead(t: TestContext) {
    const { caller, served } = await open(t, 0)
    const [sending, idle] = [await caller(), await caller()]
    for (const one of [sending, idle]) assert.match(await one.get(), /served/)
    const before = served[0]?.bytesRead ?? 0
    sending.write(HEAD)
    await until(() => (served[0]?.bytesRead ?? 0) > before)
    return { caller, sending, idle }
  }

  test('a head that arrives for longer than another connection idles is cut', async (t) => {
    const { caller, sending, idle } = await openWithHead(t)
    assert.match(await idle.get(), /served/)
    assert.match(await (await caller()).get(), /served/)
    assert.equal(await sending.closed, 'closed')
    assert.match(await idle.get(), /served/)
  })

  test('a head that began a moment ago is not cut, however long its connection had idled', async (t) => {
    const { caller, sending, idle } = await openWithHead(t)
    assert.match(await (await caller()).get(), /served/)
    assert.equal(await idle.closed, 'closed')
    assert.match(await sending.get('\r\n'), /served/)
  })

  test('none that has idled for a moment only is closed', async (t) => {
    const { caller } = await open(t, 60_000)
    const others = [await caller(), await caller()]
    for (const one of others) assert.match(await one.get(), /served/)
    assert.match(await (await caller()).get(), /503 [\s\S]*"code":"overloaded"/)
    for (const one of others) assert.match(await one.get(), /served/)
  })
})

test('of too many bytes in unfinished heads, the head that has been arriving longest is cut', async (t) => {
  const http = await listen((_, response) => void response.end('served'), {
    port: 0,
    host: '127.0.0.1',
    maxPendingBytes: 20_000,
  })
  t.onTestFinished(http.end)
  const open = () =>
    connect(http.port, '127.0.0.1')
      .on('error', () => {})
      .resume()
  const [idle, first, second] = [open(), open(), open()]
  const isClosed = (socket: Socket) => once(socket, 'close').then(() => 'closed')
  const closed = isClosed(first)
  for (const socket of [first, second]) {
    socket.write(`${HEAD}x: ${'a'.repeat(8_000)}`)
    await setTimeout(20)
  }
  second.write('a'.repeat(4_000))
  assert.equal(await closed, 'closed')
  for (const socket of [idle, second]) {
    const answered = once(socket, 'data')
    socket.write(socket === second ? '\r\n\r\n' : GET)
    assert.match(String(await answered), /200 OK/)
    socket.destroy()
  }
})

test('a request with more headers than the bound is refused, and none is dropped without a word', async (t) => {
  const { caller } = await open(t, 0)
  assert.match(await (await caller()).get(`${HEAD}${'a: b\r\n'.repeat(99)}\r\n`), /200 OK/)
  assert.match(
    await (await caller()).get(`${HEAD}${'a: b\r\n'.repeat(100)}\r\n`),
    /431 [\s\S]*100 headers/,
  )
})

test('an idle connection does not keep its last request in memory', async (t) => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  const { caller, later } = await open(t, 0)
  const { write, get } = await caller()
  write(GET_LATER)
  await until(() => later.length === 1)
  const [response] = later.splice(0).map((answered) => new WeakRef(answered.end('served')))
  await until(() => {
    collectGarbage()
    return response?.deref() === undefined
  })
  assert.match(await get(), /served/)
})
