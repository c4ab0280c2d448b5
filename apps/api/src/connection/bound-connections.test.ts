import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
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

  test('none with a request in progress, or with one arriving, is closed', async (t) => {
    const { caller, served, later } = await open(t, 0)
    const [busy, sending] = [await caller(), await caller()]
    assert.match(await sending.get(), /served/)
    const before = served[0]?.bytesRead ?? 0
    sending.write(HEAD)
    busy.write(GET_LATER)
    await until(() => (served[0]?.bytesRead ?? 0) > before && later.length === 1)
    assert.match(await (await caller()).get(), /503 [\s\S]*"code":"overloaded"/)
    later[0]?.end('served')
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
