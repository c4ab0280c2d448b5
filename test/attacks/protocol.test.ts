// Attacks by the form of HTTP messages: lengths, smuggling, folded lines, slow senders, odd paths
// and methods.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { beforeSuite } from '@sluice/test-support'
import { afterEach, describe, test } from 'vitest'
import { createCaller } from '../e2e/support/caller.ts'
import { isProblem } from '../e2e/support/documented.ts'
import { storedIn } from '../e2e/support/read-reply.ts'
import { someThread } from '../e2e/support/some-thread.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { exchange, type RawAnswer } from './support/exchange.ts'
import { assertUnharmed } from './support/unharmed.ts'

/** The head of a request without its end, and the requests that an attacker hides in its body. */
const SMUGGLED = 'smuggled'
const CLOSE = 'connection: close'
/** Slow senders send their next byte after this. */
const ROUND_MS = 250
const MAX_ROUNDS = 2_000 / ROUND_MS
const message = (...lines: string[]) => lines.join('\r\n')

describe('the form of a message', () => {
  let sluice: TestSluice
  beforeSuite(async (t) => {
    sluice = await startSluice(t)
  })
  const served = async () =>
    assert.equal(storedIn(await createCaller(sluice).post(someThread())).source.outcome, 'created')
  afterEach(served)

  const headWith = (...headers: string[]) =>
    message(
      'POST /sources HTTP/1.1',
      'host: a',
      'content-type: application/json',
      `x-api-key: ${sluice.key}`,
      ...headers,
      '',
      '',
    )
  const thread = (externalId: string) => JSON.stringify(someThread({ externalId, quotes: [] }))
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
  /** A whole good request, as an attacker hides it behind another one. */
  const hidden = () =>
    headWith(CLOSE, `content-length: ${thread(SMUGGLED).length}`) + thread(SMUGGLED)
  const statusesOf = (answers: RawAnswer[]) => answers.map(({ status }) => status)

  /** Every refusal is a whole problem, with a request id. */
  function judge(answers: RawAnswer[], statuses: number[], context: string): void {
    assert.deepEqual(
      statusesOf(answers),
      statuses,
      `${context}: ${JSON.stringify(answers).slice(0, 500)}`,
    )
    for (const { status, headers, body } of answers) {
      assert.match(headers['x-request-id'] ?? '', /^[\x21-\x7e]{1,128}$/)
      if (status < 400 || body === '') continue
      assert.equal(headers['content-type'], 'application/problem+json')
      assert.ok(isProblem(JSON.parse(body)), body)
    }
  }

  const refusedLengths: [it: string, headers: string[]][] = [
    ['two different lengths', ['content-length: 2', 'content-length: 400']],
    ['two equal lengths', ['content-length: 2', 'content-length: 2']],
    ['two lengths in one line', ['content-length: 2, 400']],
    ['a length with a sign', ['content-length: +2']],
    ['a negative length', ['content-length: -1']],
    ['a length in hexadecimal', ['content-length: 0x2']],
    ['a length with a space in it', ['content-length: 2 00']],
    ['a length beyond any integer', ['content-length: 99999999999999999999']],
    ['an empty length', ['content-length: ']],
    ['a length and chunks', ['content-length: 12', 'transfer-encoding: chunked']],
    ['chunks and a length', ['transfer-encoding: chunked', 'content-length: 12']],
    ['chunks twice', ['transfer-encoding: chunked, chunked']],
    ['chunks that are not last', ['transfer-encoding: chunked, identity']],
    ['a coding that is nearly chunked', ['transfer-encoding: xchunked', 'content-length: 12']],
    ['two codings, the second unknown', ['transfer-encoding: chunked', 'transfer-encoding: cow']],
    ['a space before the colon', ['transfer-encoding : chunked', 'content-length: 12']],
    ['a tab before the colon', ['transfer-encoding\t: chunked', 'content-length: 12']],
    ['a folded line', ['x-folded: a', ' transfer-encoding: chunked', 'content-length: 12']],
    ['a folded coding', ['transfer-encoding:', ' chunked', 'content-length: 12']],
    [
      'a bare carriage return in a header',
      ['x-a: b\rtransfer-encoding: chunked', 'content-length: 12'],
    ],
    ['a bare line feed in a header', ['x-a: b\ntransfer-encoding: chunked', 'content-length: 12']],
    ['a zero byte in a header', ['x-a: b\0c', 'content-length: 2']],
    ['a line without a colon', ['nonsense', 'content-length: 2']],
    ['a space in a name', ['x a: b', 'content-length: 2']],
  ]
  for (const [it, headers] of refusedLengths) {
    test(`${it}: one 400, and the bytes behind it are no request`, async () => {
      // By its chunks as by its length, the body ends where the hidden request begins.
      const body = headers.some((line) => line.includes('chunked'))
        ? `${chunk('{}')}0\r\n\r\n`
        : '{}'
      judge(await exchange(sluice.url, `${headWith(...headers)}${body}${hidden()}`), [400], it)
    })
  }

  test('Transfer-Encoding: gzip, chunked is a 501, and the bytes behind it are no request', async () => {
    const body = `${chunk(thread(SMUGGLED))}0\r\n\r\n${hidden()}`
    const answers = await exchange(
      sluice.url,
      `${headWith('transfer-encoding: gzip, chunked')}${body}`,
    )
    judge(answers, [501], 'gzip, chunked')
    assert.equal(JSON.parse(answers[0]?.body ?? '').code, 'transfer_coding_unsupported')
  })

  for (const [host, status] of [
    ['a b', 400],
    ['a/b', 400],
    ['user@a', 400],
    ['a:b', 400],
    ['a?b', 400],
    ['[::1', 400],
    ['[::1]:80', 200],
    ['a.example:80', 200],
    ['', 200],
  ] as const) {
    test(`Host: ${host} is a ${status}`, async () => {
      judge(
        await exchange(sluice.url, message('GET /limits HTTP/1.1', `host: ${host}`, CLOSE, '', '')),
        [status],
        host,
      )
    })
  }

  const chunkings: [it: string, body: string, statuses: number[]][] = [
    ['a size past any integer', 'fffffffffffffffff\r\n{}', [400]],
    ['a negative size', '-2\r\n{}\r\n0\r\n\r\n', [400]],
    ['a size with a prefix', '0x2\r\n{}\r\n0\r\n\r\n', [400]],
    ['a line feed alone after the size', '2\n{}\r\n0\r\n\r\n', [400]],
    ['more bytes than the size says', '2\r\n{}}}}\r\n0\r\n\r\n', [400]],
    ['an extension of 20 kB', `2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`, [400]],
  ]
  for (const [it, body, statuses] of chunkings) {
    test(`chunks with ${it}: one 400, and the bytes behind it are no request`, async () => {
      judge(
        await exchange(sluice.url, headWith('transfer-encoding: chunked') + body + hidden()),
        statuses,
        it,
      )
    })
  }

  test('chunks with small extensions and trailers are read, and a trailer is no header', async () => {
    const body = chunk(thread('extended')).replace('\r\n', ';a=b;c="d"\r\n')
    const trailers = '0;last\r\nx-api-key: wrong\r\nx-request-id: trailer\r\n\r\n'
    const [answer, ...more] = await exchange(
      sluice.url,
      headWith(CLOSE, 'transfer-encoding: chunked') + body + trailers,
    )
    assert.equal(answer?.status, 200)
    assert.notEqual(answer.headers['x-request-id'], 'trailer')
    assert.deepEqual(more, [])
  })

  test('a body that a GET has is no request', async () => {
    const inner = hidden()
    const bytes = message(
      'GET /limits HTTP/1.1',
      'host: a',
      `content-length: ${inner.length}`,
      '',
      inner,
    )
    judge(await exchange(sluice.url, bytes), [200], 'GET with a body')
  })

  test('a length that is too small leaves a rest that is refused, not stored', async () => {
    const bytes = `${headWith('content-length: 10')}${thread(SMUGGLED)}`
    // One answer for the thread that ends too early, one for the rest, which is no HTTP.
    judge(await exchange(sluice.url, bytes), [400, 400], 'a small length')
  })

  test('none of the hidden requests was stored', async () => {
    assert.equal(await sluice.db.collection('sources').countDocuments({ externalId: SMUGGLED }), 0)
    assert.equal((await exchange(sluice.url, hidden()))[0]?.status, 200)
    assert.equal(await sluice.db.collection('sources').countDocuments({ externalId: SMUGGLED }), 1)
  })

  const firstLines: [it: string, bytes: string, statuses: number[]][] = [
    ['no version, as of HTTP/0.9', 'GET /limits\r\n\r\n', [400]],
    ['a version that does not exist', message('GET /limits HTTP/9.9', 'host: a', '', ''), [400]],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400]],
    ['the hello of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', [400]],
    ['line feeds alone', 'GET /limits HTTP/1.1\nhost: a\n\n', [400]],
    ['a space too many', message('GET  /limits HTTP/1.1', 'host: a', CLOSE, '', ''), [200]],
    ['a space in the path', message('GET /lim its HTTP/1.1', 'host: a', '', ''), [400]],
    ['a method in lower case', message('get /limits HTTP/1.1', 'host: a', '', ''), [400]],
    ['a method that does not exist', message('STEAL /limits HTTP/1.1', 'host: a', '', ''), [400]],
    [
      'another site as its target',
      message('GET http://elsewhere.example/limits HTTP/1.1', 'host: a', CLOSE, '', ''),
      [200],
    ],
    ['an asterisk as its target', message('OPTIONS * HTTP/1.1', 'host: a', CLOSE, '', ''), [403]],
    [
      'dots in its path',
      message('GET /limits/../jobs/1 HTTP/1.1', 'host: a', CLOSE, '', ''),
      [403],
    ],
    [
      'encoded dots in its path',
      message('GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1', 'host: a', CLOSE, '', ''),
      [403],
    ],
    [
      'a path of 10,000 characters',
      message(`GET /${'a'.repeat(10_000)} HTTP/1.1`, 'host: a', CLOSE, '', ''),
      [403],
    ],
    [
      'an upgrade',
      message(
        'GET /limits HTTP/1.1',
        'host: a',
        'connection: upgrade, close',
        'upgrade: websocket',
        '',
        '',
      ),
      [200],
    ],
    ['TRACE', message('TRACE /limits HTTP/1.1', 'host: a', CLOSE, '', ''), [405]],
    ['DELETE', message('DELETE /sources HTTP/1.1', 'host: a', CLOSE, '', ''), [403]],
    ['HTTP/1.0', message('GET /limits HTTP/1.0', '', ''), [200]],
  ]
  for (const [it, bytes, statuses] of firstLines) {
    test(`a request with ${it}: ${statuses}`, async () => {
      judge(await exchange(sluice.url, bytes), statuses, it)
    })
  }

  test('a key behind 97 short headers is read', async () => {
    const headers = Array.from({ length: 97 }, () => 'a:')
    const head = message(
      'GET /jobs/1 HTTP/1.1',
      'host: a',
      CLOSE,
      ...headers,
      `x-api-key: ${sluice.key}`,
      '',
      '',
    )
    judge(await exchange(sluice.url, head), [404], 'many headers')
  })

  test('500 callers that send heads and bodies byte by byte delay no other caller by more than two seconds', async (t) => {
    const head = headWith('content-length: 5000')
    const sockets = await openMany(sluice.url, 500)
    t.onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
    })
    for (const [at, socket] of sockets.entries()) socket.write(at % 2 === 0 ? head : 'POST /sour')
    let rounds = 0
    const drip = () => {
      for (const [at, socket] of sockets.entries()) socket.write(at % 2 === 0 ? ' ' : 'x')
      rounds += 1
    }
    const dripping = setInterval(drip, ROUND_MS)
    t.onTestFinished(() => clearInterval(dripping))
    // In rounds: a busy machine slows the senders, too.
    const waits: number[] = []
    while (rounds < 2 * MAX_ROUNDS) {
      const before = rounds
      await served()
      waits.push(rounds - before)
    }
    assert.ok(Math.max(...waits) < MAX_ROUNDS, `the answers came after ${waits} rounds`)
    assert.equal(sockets.filter(({ destroyed }) => destroyed).length, 0)
  })

  test('leaves the processes running, with no error in their logs', () => assertUnharmed(sluice))
})

async function openMany(url: string, count: number): Promise<Socket[]> {
  const { hostname, port } = new URL(url)
  const sockets = Array.from({ length: count }, () => connect(Number(port), hostname))
  await Promise.all(sockets.map((socket) => once(socket.on('error', () => {}).resume(), 'connect')))
  return sockets
}
