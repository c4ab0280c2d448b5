import assert from 'node:assert/strict'
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { shareSluice } from '../support/shared-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const codings: [coding: string, name: string, compress: (body: Buffer) => Buffer][] = [
  ['gzip', 'gzip', (body) => gzipSync(body)],
  [
    'br',
    'br',
    (body) => brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  ],
  ['deflate', 'deflate', (body) => deflateSync(body)],
  ['deflate', 'deflate without its zlib header', (body) => deflateRawSync(body)],
  ['zstd', 'zstd', (body) => zstdCompressSync(body)],
]

const bytesOf = (value: unknown) => Buffer.from(JSON.stringify(value))
const withText = (text: string) => JSON.stringify(someThread({ title: text }))

describe('a body may have any supported coding, and must be UTF-8', () => {
  let caller: Caller
  beforeSuite(async (t) => {
    caller = createCaller(await shareSluice(t))
  })

  for (const [coding, name, compress] of codings) {
    const headers = { 'content-encoding': coding }

    test(`a ${name} body is inflated`, async () => {
      // Incompressible enough to come in many chunks.
      const quotes = Array.from({ length: 2_000 }, () => ({
        text: Math.random().toString(36).repeat(5),
      }))
      assert.equal(
        storedIn(await caller.post(compress(bytesOf(someThread({ quotes }))), headers)).quotes
          .length,
        2_000,
      )
    })

    test(`a ${name} bomb gets a 413`, async () => {
      const bomb = compress(Buffer.alloc(32 * 1024 * 1024, ' '))
      problemIn(await caller.post(bomb, headers), 413, 'body_too_large')
    })

    test(`a ${name} body of the largest size is stored, and one more byte gets a 413`, async () => {
      const thread = Buffer.alloc(10 * 1024 * 1024, ' ')
      bytesOf(someThread()).copy(thread)
      storedIn(await caller.post(compress(thread), headers))
      problemIn(
        await caller.post(compress(Buffer.concat([thread, Buffer.from(' ')])), headers),
        413,
        'body_too_large',
      )
    })

    test(`a ${name} body that was cut off gets a 400`, async () => {
      const whole = compress(
        bytesOf(someThread({ description: Math.random().toString(36).repeat(40) })),
      )
      for (const length of [1, 5, whole.length >> 1, whole.length - 1]) {
        problemIn(await caller.post(whole.subarray(0, length), headers), 400, 'body_unreadable')
      }
    })

    test(`plain JSON that is announced as ${name} gets a 400`, async () => {
      problemIn(await caller.post(someThread(), headers), 400, 'body_unreadable')
    })

    test(`${name} inside ${name} is inflated once, and gets a 400`, async () => {
      const { status } = await caller.post(compress(compress(bytesOf(someThread()))), headers)
      assert.equal(status, 400)
    })

    test(`an empty ${name} body gets a 400`, async () => {
      const { status } = await caller.post(compress(Buffer.alloc(0)), headers)
      assert.equal(status, 400)
      assert.equal((await caller.post('', headers)).status, 400)
    })
  }

  for (const coding of ['compress', 'gzip, gzip', 'gzip, br', 'lzma', '*', 'aws-chunked']) {
    test(`Content-Encoding: ${coding} gets a 415`, async () => {
      const reply = await caller.post(gzipSync(bytesOf(someThread())), {
        'content-encoding': coding,
      })
      problemIn(reply, 415, 'encoding_unsupported')
      assert.match(reply.headers.get('accept-encoding') ?? '', /gzip/)
    })
  }

  test('codings may be named in any case, and identity leaves the body unchanged', async () => {
    storedIn(await caller.post(gzipSync(bytesOf(someThread())), { 'content-encoding': 'GZip' }))
    storedIn(await caller.post(someThread(), { 'content-encoding': 'identity' }))
  })

  test('a gzip body may have several members', async () => {
    const body = bytesOf(someThread())
    const members = Buffer.concat([gzipSync(body.subarray(0, 20)), gzipSync(body.subarray(20))])
    storedIn(await caller.post(members, { 'content-encoding': 'gzip' }))
  })

  for (const type of [
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'APPLICATION/JSON',
  ]) {
    test(`Content-Type: ${type} is accepted`, async () => {
      storedIn(await caller.post(someThread(), { 'content-type': type }))
    })
  }

  for (const type of [
    '',
    'text/plain',
    'text/json',
    'application/jsonp',
    'application/x-ndjson',
    'multipart/form-data; boundary=a',
    ';',
    'json',
  ]) {
    test(`Content-Type: ${type || '(none)'} gets a 415`, async () => {
      problemIn(
        await caller.post(someThread(), { 'content-type': type }),
        415,
        'media_type_unsupported',
      )
    })
  }

  for (const charset of ['latin1', 'utf-16', 'us-ascii', '"iso-8859-1"']) {
    test(`charset=${charset} gets a 415`, async () => {
      problemIn(
        await caller.post(someThread(), { 'content-type': `application/json; charset=${charset}` }),
        415,
        'charset_unsupported',
      )
    })
  }

  const notUtf8: [it: string, bytes: number[]][] = [
    ['Latin-1', [0xe9]],
    ['a sequence cut off', [0xe2, 0x82]],
    ['an overlong sequence', [0xc0, 0xaf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a code point beyond the last one', [0xf4, 0x90, 0x80, 0x80]],
  ]
  for (const [it, bytes] of notUtf8) {
    test(`${it} is not UTF-8 and gets a 400`, async () => {
      const [head = '', tail = ''] = withText('a|b').split('|')
      const body = Buffer.concat([Buffer.from(head), Buffer.from(bytes), Buffer.from(tail)])
      problemIn(await caller.post(body), 400, 'body_unreadable')
    })
  }

  test('UTF-16 is not UTF-8 and gets a 400', async () => {
    assert.equal((await caller.post(Buffer.from(`\ufeff${withText('a')}`, 'utf16le'))).status, 400)
  })

  test('one byte order mark before the text is skipped, and a second one is refused', async () => {
    storedIn(await caller.post(`\ufeff${withText('a')}`))
    problemIn(await caller.post(`\ufeff\ufeff${withText('a')}`), 400, 'json_invalid')
  })

  for (const text of [
    '',
    ' ',
    '{',
    '{}{}',
    "{'a':1}",
    '{"a":1,}',
    '[NaN]',
    'undefined',
    '{"a":"\n"}',
    '// a\n{}',
    '{"a":01}',
    '\u00a0{}',
  ]) {
    test(`${JSON.stringify(text)} is not JSON and gets a 400`, async () => {
      problemIn(await caller.post(text), 400, 'json_invalid')
    })
  }

  test('a problem with the JSON repeats nothing of it', async () => {
    const { text } = await caller.post('{"title": secret-words}')
    assert.doesNotMatch(text, /secret/)
  })
})
