import assert from 'node:assert/strict'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { shareSluice } from '../support/shared-sluice.ts'
import { createCaller } from './support/caller.ts'
import { openWire, postHead } from './support/open-wire.ts'
import { someThread } from './support/some-thread.ts'

const MIB = 1024 * 1024

describe('a request is checked in order, and refused as early as possible', () => {
  let url: string
  let key: string
  beforeSuite(async (t) => {
    ;({ url, key } = await shareSluice(t))
  })
  const good = () => ({ 'x-api-key': key })
  const wrong = () => ({ 'x-api-key': 'wrong' })

  const heads: [it: string, headersOf: () => Record<string, string | number>, status: number][] = [
    [
      'the key is checked first',
      () => ({ ...wrong(), 'content-length': 50 * MIB, 'content-type': 'text/plain' }),
      403,
    ],
    [
      'the media type is checked before the size',
      () => ({ ...good(), 'content-length': 50 * MIB, 'content-type': 'text/plain' }),
      415,
    ],
    [
      'the content coding is checked before the size',
      () => ({ ...good(), 'content-length': 50 * MIB, 'content-encoding': 'compress' }),
      415,
    ],
    [
      'the charset is checked before the size',
      () => ({
        ...good(),
        'content-length': 50 * MIB,
        'content-type': 'application/json; charset=latin1',
      }),
      415,
    ],
    [
      'the announced size is checked before the body',
      () => ({ ...good(), 'content-length': 10 * MIB + 1 }),
      413,
    ],
  ]
  for (const [it, headersOf, status] of heads) {
    test(`${it}: ${status} before the body arrives`, async () => {
      const wire = await openWire(url)
      await wire.write(postHead(headersOf()))
      assert.match(await wire.until(/"requestId":"[^"]+"/), new RegExp(`^HTTP/1.1 ${status} `))
      wire.socket.destroy()
    })

    test(`${it}: ${status} instead of 100 Continue`, async () => {
      const wire = await openWire(url)
      await wire.write(postHead({ ...headersOf(), expect: '100-continue' }))
      const answer = await wire.until(/"requestId":"[^"]+"/)
      assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `))
      // The next bytes on this connection could be the body or another request, so the connection
      // can't be used again.
      assert.match(answer, /^connection: close\r$/im)
      wire.socket.destroy()
    })
  }

  test('a caller that expects 100 Continue gets it, and then its answer', async () => {
    const body = JSON.stringify(someThread())
    const wire = await openWire(url)
    await wire.write(postHead({ ...good(), 'content-length': body.length, expect: '100-continue' }))
    await wire.until(/^HTTP\/1\.1 100 Continue\r\n\r\n$/)
    await wire.write(body)
    assert.match(await wire.until(/"outcome":"created"/), /HTTP\/1\.1 200 OK/)
    wire.socket.destroy()
  })

  const bodies: [
    it: string,
    body: string,
    headersOf: () => Record<string, string>,
    status: number,
  ][] = [
    ['a wrong key is reported before a wrong body', '{', wrong, 403],
    [
      'a wrong type is reported before a wrong body',
      '{',
      () => ({ ...good(), 'content-type': 'text/json' }),
      415,
    ],
    ['too many bytes are reported before wrong JSON', '{'.repeat(10 * MIB + 1), good, 413],
    ['wrong JSON is reported before a wrong thread', '{"title":7', good, 400],
  ]
  for (const [it, body, headersOf, status] of bodies) {
    test(`${it}: ${status}`, async () => {
      const { status: answered, text } = await createCaller({ url }).post(body, headersOf())
      const { code } = JSON.parse(text)
      assert.equal(answered, status)
      if (status === 400) assert.equal(code, 'json_invalid')
    })
  }

  const large: [it: string, headersOf: () => Record<string, string>, status: number][] = [
    ['a wrong key', wrong, 403],
    ['a wrong type', () => ({ ...good(), 'content-type': 'text/plain' }), 415],
    ['too many bytes', good, 413],
  ]
  for (const [it, headersOf, status] of large) {
    test(`a caller that sends 50 MiB before reading gets ${status} for ${it}`, async () => {
      const wire = await openWire(url)
      await wire.write(postHead({ ...headersOf(), 'content-length': 50 * MIB }))
      for (let sent = 0; sent < 50; sent++) await wire.write(Buffer.alloc(MIB, '{'))
      assert.match(await wire.until(/"requestId":"[^"]+"/), new RegExp(`^HTTP/1.1 ${status} `))
      wire.socket.destroy()
    })

    test(`a caller that sends 50 MiB in chunks before reading gets ${status} for ${it}`, async () => {
      const wire = await openWire(url)
      await wire.write(postHead({ ...headersOf(), 'transfer-encoding': 'chunked' }))
      for (let sent = 0; sent < 50; sent++)
        await wire.write(`${MIB.toString(16)}\r\n${'{'.repeat(MIB)}\r\n`)
      await wire.write('0\r\n\r\n')
      assert.match(await wire.until(/"requestId":"[^"]+"/), new RegExp(`^HTTP/1.1 ${status} `))
      wire.socket.destroy()
    })
  }

  test('a caller that keeps sending after its refusal is disconnected', async () => {
    const wire = await openWire(url)
    await wire.write(postHead({ ...wrong(), 'transfer-encoding': 'chunked' }))
    let sent = 0
    const send = async () => {
      for (; sent < 300; sent++) await wire.write(`${MIB.toString(16)}\r\n${'{'.repeat(MIB)}\r\n`)
    }
    await assert.rejects(send())
    assert.ok(sent >= 50, `cut off after ${sent} MiB`)
  })

  test('the connection of a refused request serves the next request', async () => {
    const [bad, fine] = ['{}', JSON.stringify(someThread())]
    const wire = await openWire(url)
    await wire.write(postHead({ ...good(), 'content-length': bad.length }) + bad)
    await wire.until(/"requestId":"[^"]+"/)
    await wire.write(postHead({ ...good(), 'content-length': fine.length }) + fine)
    assert.match(await wire.until(/"outcome":"created"/), /HTTP\/1\.1 200 OK/)
    wire.socket.destroy()
  })

  const malformed: [it: string, text: string][] = [
    ['a text that is not HTTP', 'hello\r\n\r\n'],
    [
      'a request with two lengths',
      'POST /sources HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
    ],
  ]
  for (const [it, text] of malformed) {
    test(`${it} gets a 400 with a problem`, async () => {
      const wire = await openWire(url)
      await wire.write(text)
      const answer = await wire.until(/"requestId":"[^"]+".*"total":1\}/)
      assert.match(answer, /^HTTP\/1.1 400 [\s\S]*application\/problem\+json/)
      assert.match(answer, /"errors":\[\{"pointer":"","code":"not_http",/)
      wire.socket.destroy()
    })
  }
})
