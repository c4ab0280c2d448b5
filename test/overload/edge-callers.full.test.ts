// Callers that cost much, measured by how long everybody else waits. Each runs alone, as seconds
// are the bound.
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { postHead } from '../e2e/support/open-wire.ts'
import { openSockets, slowestWhile, watchPeak } from '../support/edge-support.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'

const AHEAD = 200_000
/**
 * `/livez` answers within a second, and half of one is for the machine. Without bounds, these
 * callers would take minutes.
 */
const SLOW_MS = 1_500
const LAST_REQUEST = 'GET /limits HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'

const request = (bytes: number, body = 0) => {
  const head = `${body > 0 ? `POST /sources HTTP/1.1\r\ncontent-length: ${body}` : 'GET /limits HTTP/1.1'}\r\nhost: a\r\n`
  const padding = Math.max(0, bytes - head.length - 7)
  return `${head}${padding > 0 ? `x: ${'a'.repeat(padding)}\r\n` : ''}\r\n${'b'.repeat(body)}`
}
const chunked = `POST /sources HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(30_000)}`
/** The most that the API may grow by: three quarters of what many callers send. */
const MAX_MIB = 300
const MANY = 2_000
const forms: [
  it: string,
  bytes: string,
  sockets: number,
  how: { reads?: boolean; halfCloses?: boolean },
][] = [
  ['many callers with small requests', request(40), MANY, {}],
  ['many that read', request(40), MANY, { reads: true }],
  ['many that half-close', request(40), MANY, { halfCloses: true }],
  ['many with requests of 16 kB', request(16_000), MANY, {}],
  ['300 with bodies', request(40, 100), 300, { reads: true }],
  ['300 with chunks of one byte', chunked, 300, { reads: true }],
  ['one', request(40), 1, { reads: true }],
]
describe('callers that cost much', () => {
  let sluice: TestSluice
  beforeSuite(async (t) => {
    sluice = await startSluice(t, { workers: 0 })
  })

  for (const [it, text, count, { reads, halfCloses }] of forms) {
    test(`callers without a key that pipeline 200 kB each delay and fill nothing: ${it}`, async (t) => {
      const { url, api } = sluice
      // What the first requests load is no growth.
      for (let times = 0; times < 20; times++) await fetch(`${url}/limits`)
      const growth = await watchPeak(api)
      // Few large requests do not reach the bound of pipelined ones: the last one closes the
      // connection.
      const bytes = Buffer.from(text.repeat(Math.ceil(AHEAD / text.length)) + LAST_REQUEST)
      const sockets = await openSockets(t, url, count)
      for (const socket of sockets) {
        if (reads) socket.resume()
        if (halfCloses) socket.end(bytes)
        else socket.write(bytes)
      }
      const closed = Promise.all(
        sockets.map(
          (socket) => socket.destroyed || new Promise((resolve) => socket.on('close', resolve)),
        ),
      )
      if (!reads) await pause(1_000)
      for (const socket of sockets) if (!reads) socket.resume()
      const slowest = await slowestWhile(closed, async () => {
        assert.equal((await fetch(`${url}/livez`)).status, 200)
        await pause(50)
      })
      assert.ok(slowest < SLOW_MS, `/livez took ${slowest} ms`)
      const grown = await growth()
      await t.annotate(
        `/livez took ${slowest.toFixed()} ms at most, and memory grew by ${grown.toFixed()} MiB`,
      )
      assert.ok(grown < MAX_MIB, `grew by ${grown} MiB`)
    })
  }

  const short = Array.from({ length: 960 }, (_, at) => `h${at}: ${'v'.repeat(8)}\r\n`)
  const unfinished: [it: string, text: string][] = [
    ['heads', `GET /limits HTTP/1.1\r\nhost: a\r\n${short.join('').slice(0, 14_000)}`],
    [
      'trailers',
      `POST /sources HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n${short.join('').slice(0, 14_000)}`,
    ],
  ]
  for (const [it, text] of unfinished) {
    test(`unfinished ${it} of 960 short headers fill nothing`, async (t) => {
      const { url, api } = sluice
      const growth = await watchPeak(api)
      const sockets = await openSockets(t, url, 9_000)
      await Promise.all(
        sockets.map((socket) => new Promise((resolve) => socket.resume().write(text, resolve))),
      )
      // The service has read from all of them, once it has answered a later one.
      for (let times = 0; times < 10; times++)
        assert.equal((await fetch(`${url}/livez`)).status, 200)
      const grown = await growth()
      await t.annotate(`memory grew by ${grown.toFixed()} MiB`)
      assert.ok(grown < MAX_MIB, `grew by ${grown} MiB`)
    })
  }

  test('callers with a key that send bodies in chunks of one byte delay and fill nothing', async (t) => {
    const { url, key, api } = sluice
    const growth = await watchPeak(api)
    const sockets = await openSockets(t, url, 100)
    const sending = sockets.map((socket) => {
      socket.resume().write(postHead({ 'x-api-key': key, 'transfer-encoding': 'chunked' }))
      return setInterval(
        () => socket.writableLength === 0 && socket.write('1\r\na\r\n'.repeat(3_000)),
        100,
      )
    })
    const slowest = await slowestWhile(pause(8_000), async () => {
      assert.equal((await fetch(`${url}/livez`)).status, 200)
    })
    for (const timer of sending) clearInterval(timer)
    const grown = await growth()
    await t.annotate(
      `/livez took ${slowest.toFixed()} ms at most, and memory grew by ${grown.toFixed()} MiB`,
    )
    assert.ok(slowest < SLOW_MS, `/livez took ${slowest} ms`)
    assert.ok(grown < MAX_MIB, `grew by ${grown} MiB`)
  })
})
