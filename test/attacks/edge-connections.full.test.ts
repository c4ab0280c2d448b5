import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeSuite, startProcess } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { chunk, openWire, postHead } from '../e2e/support/open-wire.ts'
import { readMetric } from '../e2e/support/until-metric.ts'
import { exchange, openSockets } from '../support/edge-support.ts'
import { prepareSluice, startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

const GET_LIMITS = 'GET /limits HTTP/1.1\r\nhost: a\r\n\r\n'

/** With the default settings. Bounds of a test's own need an API of its own. */
let sluice: TestSluice
beforeSuite(async (t) => {
  sluice = await startSluice(t, { workers: 0 })
})

test('of 1,000 pipelined requests, 16 are answered in order, and the last answer closes the connection', async () => {
  const { url, api } = sluice
  const heads = Array.from(
    { length: 1_000 },
    (_, at) => `GET /limits HTTP/1.1\r\nhost: a\r\nx-request-id: r${at}\r\n\r\n`,
  )
  const answers = await exchange(url, heads.join(''))
  const ids = Array.from(answers.matchAll(/^x-request-id: (r\d+)\r$/gm), ([, id]) => id)
  assert.deepEqual(
    ids,
    Array.from({ length: 16 }, (_, at) => `r${at}`),
  )
  assert.deepEqual(answers.match(/^connection: close\r$/gm)?.length, 1)
  assert.ok(answers.lastIndexOf('connection: close') > answers.indexOf('x-request-id: r14'))
  // The log has what ran.
  await api.line(({ requestId }) => requestId === 'r15')
  assert.equal(api.log.filter(({ requestId }) => /^r\d+$/.test(String(requestId))).length, 16)
})

test('a caller that waits for some answers before it sends more is served for ever', async () => {
  const { url } = sluice
  const wire = await openWire(url)
  for (let round = 0; round < 10; round++) {
    const ids = Array.from({ length: 10 }, (_, at) => `r${round}-${at}`)
    await wire.write(
      ids.map((id) => `GET /livez HTTP/1.1\r\nhost: a\r\nx-request-id: ${id}\r\n\r\n`).join(''),
    )
    await wire.until(new RegExp(`x-request-id: r${round}-9\r[\\s\\S]*alive`))
  }
  wire.socket.destroy()
})

test('requests are read wherever their bytes are cut', async () => {
  const { url, key } = sluice
  const text = [
    'GET /limits HTTP/1.1\r\nhost: a\r\n\r\n\r\nGET /livez HTTP/1.1\r\nhost: a\r\n\r\n',
    `${postHead({ 'x-api-key': key, 'transfer-encoding': 'chunked' })}${chunk('{\r\n\r\n\r')}${chunk('\n}')}0\r\n\r\n`,
    `${postHead({ 'x-api-key': key, 'content-length': 6 })}{\r\n\r\n}`,
    'GET /jobs/unknown HTTP/1.1\r\nhost: a\r\n\r\n',
  ].join('')
  for (const size of [1, 2, 3, 5, 7, 1_000]) {
    const wire = await openWire(url)
    for (let at = 0; at < text.length; at += size) {
      await wire.write(text.slice(at, at + size))
      if (at % 16 === 0) await pause(0)
    }
    const answers = await wire.until(/HTTP\/1.1 403/)
    assert.deepEqual(
      Array.from(answers.matchAll(/HTTP\/1.1 (\d+)/g), ([, status]) => status),
      ['200', '200', '400', '400', '403'],
    )
    wire.socket.destroy()
  }
})

test('a caller that reads nothing of a large answer is cut', async (t) => {
  const { url, key, api } = await startSluice(t, {
    settings: { MAX_BODIES_BYTES: String(1024 * 1024) },
  })
  const quotes = Array.from({ length: 100 }, (_, at) => ({
    externalId: `q${at}`,
    text: 'word '.repeat(19_000),
  }))
  const thread = { service: 'slack', externalId: 'large', title: 'large', quotes }
  const own = { 'x-api-key': key, connection: 'close' }
  const headers = { ...own, 'content-type': 'application/json', prefer: 'respond-async' }
  const posted = await fetch(`${url}/sources`, {
    method: 'POST',
    headers,
    body: JSON.stringify(thread),
  })
  await posted.text()
  const job = posted.headers.get('location') ?? ''
  const found = await fetch(`${url}${job}`, { headers: { ...own, prefer: 'wait=20' } })
  assert.match(await found.text(), /"completed"/)

  const answered = () =>
    api.log.filter(({ msg, path }) => msg === 'request.answered' && path === job)
  // The tenant may read the next large answer only after a pause.
  await until('an answer is on its way', async () => {
    const before = answered().length
    const [socket] = await openSockets(t, url, 1)
    socket?.write(
      `GET ${job} HTTP/1.1\r\nhost: a\r\nx-api-key: ${key}\r\nconnection: close\r\n\r\n`,
    )
    await until('it is answered', () => answered().length > before)
    return answered().at(-1)?.status === 200
  })
  await until('it is cut', async () => (await readMetric(api, 'sluice_connections')) === 0)
})

test('large answers to callers without a key are bounded, and others are served', async (t) => {
  const { url } = sluice
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`
  const bundle = get('/docs/assets/swagger-ui-bundle.js')
  const sockets = await openSockets(t, url, 40)
  for (const socket of sockets) socket.write(bundle)
  const statusOf = async (head: string) => (await exchange(url, head)).slice(9, 12)
  await until('no further one is begun', async () => (await statusOf(bundle)) === '503')
  assert.equal(await statusOf(get('/livez')), '200')
  for (const socket of sockets) socket.destroy()
  await until('the bundle is served again', async () => (await statusOf(bundle)) === '200')
})

test('a connection too many gets a 503 and is closed, and all others are served', async (t) => {
  const { url } = await startSluice(t, { workers: 0, settings: { MAX_CONNECTIONS: '20' } })
  const sockets = await openSockets(t, url, 20)
  // A connection that idles would be closed for the new one.
  for (const socket of sockets) socket.write('GET /limits HTTP/1.1\r\n')
  const answer = await exchange(url, GET_LIMITS)
  assert.match(
    answer,
    /^HTTP\/1.1 503 [\s\S]*retry-after: \d[\s\S]*connection: close[\s\S]*"code":"overloaded"/,
  )
  assert.match(answer, /^x-request-id: \S+\r$/m)
  sockets[0]?.destroy()
  await until('a caller is served again', async () =>
    (
      await exchange(url, GET_LIMITS.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'))
    ).startsWith('HTTP/1.1 200'),
  )
})

test('an API that may open few files accepts fewer connections, says how to allow more, and stays reachable', async (t) => {
  const { settings } = await prepareSluice(t)
  const api = startProcess(t, 'apps/api/src/main.ts', settings, { openFiles: 256 })
  const { port } = await api.line(({ msg }) => msg === 'api.listening')
  const { maxConnections, fix } = await api.line(({ msg }) => msg === 'connections.lowered')
  assert.match(String(fix), /^ulimit -n 11100 /)
  const url = `http://127.0.0.1:${port}`
  await openSockets(t, url, 400)
  // The connections that idle longest, for a second or more, are closed for new ones.
  const isLive = async () => (await fetch(`${url}/livez`).catch(() => undefined))?.status === 200
  await until('it is reached', isLive)
  for (let at = 0; at < 20; at++) assert.equal(await isLive(), true)
  const open = await readMetric(api, 'sluice_connections')
  assert.ok(open > 100 && open <= Number(maxConnections) + 20, `${open} connections`)
  assert.deepEqual(
    api.log.filter(({ msg }) => msg === 'redis.error'),
    [],
  )
})

describe('what HTTP does not allow gets a problem, and an X-Request-Id', () => {
  const close = 'connection: close\r\n\r\n'
  const heads: [it: string, head: string, status: number, code: string][] = [
    ['no Host', `GET /limits HTTP/1.1\r\n${close}`, 400, 'body_unreadable'],
    [
      'two of them',
      `GET /limits HTTP/1.1\r\nhost: a\r\nHOST: b\r\n${close}`,
      400,
      'body_unreadable',
    ],
    [
      'an unknown Expect',
      `GET /limits HTTP/1.1\r\nhost: a\r\nexpect: 200-ok\r\n${close}`,
      417,
      'expectation_unknown',
    ],
    ['CONNECT', 'CONNECT a:443 HTTP/1.1\r\nhost: a\r\n\r\n', 405, 'method_not_allowed'],
    [
      'headers too large',
      `GET / HTTP/1.1\r\nhost: a\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    ],
    [
      '10,000 headers',
      `GET / HTTP/1.1\r\n${'a: b\r\n'.repeat(10_000)}\r\n`,
      431,
      'headers_too_large',
    ],
    ['no HTTP', 'hello\r\n\r\n', 400, 'body_unreadable'],
  ]
  for (const [it, head, status, code] of heads) {
    test(`${it}: ${status}`, async () => {
      const answer = await exchange(sluice.url, head)
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `))
      const [, id] = /^x-request-id: (\S+)\r$/im.exec(answer) ?? []
      const problem = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))
      assert.deepEqual([problem.status, problem.code, problem.requestId], [status, code, id])
    })
  }

  test('HTTP/1.0 needs no Host', async () => {
    assert.match(await exchange(sluice.url, 'GET /limits HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /)
  })

  test('a caller that closes its side after its request gets its answer', async () => {
    // Its answer needs Redis, so it comes after the end of what the caller sends.
    const head = `GET /jobs/unknown HTTP/1.1\r\nhost: a\r\nx-api-key: ${sluice.key}\r\n\r\n`
    const answer = await exchange(sluice.url, head, { halfClose: true })
    assert.match(answer, /^HTTP\/1\.1 404 [\s\S]*"code":"job_unknown"/)
  })

  test('a caller that closes its side within its request gets a problem', async () => {
    const answer = await exchange(sluice.url, 'GET /limits HTTP/1.1\r\nhost: a\r\n', {
      halfClose: true,
    })
    assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*x-request-id: \S+[\s\S]*"code":"not_http"/)
  })

  test('and so does one that closes it within its body', async () => {
    const head = `POST /sources HTTP/1.1\r\nhost: a\r\nx-api-key: ${sluice.key}\r\ncontent-type: application/json\r\n`
    const answer = await exchange(sluice.url, `${head}content-length: 100\r\n\r\n{"title"`, {
      halfClose: true,
    })
    assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*x-request-id: \S+/)
  })

  test('the API still serves', async () => {
    assert.equal((await fetch(`${sluice.url}/limits`)).status, 200)
  })
})
