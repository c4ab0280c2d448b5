import assert from 'node:assert/strict'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { beforeSuite } from '@sluice/test-support'
import fc from 'fast-check'
import { afterEach, describe, test } from 'vitest'
import { type Caller, createCaller, type Reply } from '../e2e/support/caller.ts'
import { problemIn, storedIn } from '../e2e/support/read-reply.ts'
import { resolvesIn } from '../e2e/support/resolve-pointer.ts'
import { type Body, someThread } from '../e2e/support/some-thread.ts'
import { isFull, scale } from '../support/scale.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { anyJson, headerText, mutatedThread } from './support/hostile-values.ts'

/** The time limit of most properties in the full form, in ms. A case that has begun is finished. */
const RUN_MS = 8_000
/**
 * The cases of a property. The short form has a number of them, so that it does the same work on
 * any machine.
 */
const runs = (short: number, fullMs = RUN_MS) =>
  scale({ numRuns: short }, { numRuns: 2_000, interruptAfterTimeLimit: fullMs })
const nest = (levels: number, open: string, close: string) =>
  open.repeat(levels) + close.repeat(levels)

describe('no hostile request gets a 500, hangs, or harms the next request', () => {
  let sluice: TestSluice
  let caller: Caller
  beforeSuite(async (t) => {
    sluice = await startSluice(t)
    caller = createCaller(sluice)
  })

  function judge(reply: Reply, body?: unknown): void {
    if (reply.status === 200) return void storedIn(reply)
    assert.equal(reply.status, 400, reply.text)
    const { code, errors = [], total } = JSON.parse(reply.text)
    if (code === 'request_invalid')
      assert.ok(errors.length > 0 && errors.length <= 50 && total >= errors.length, reply.text)
    for (const { pointer } of errors)
      if (body !== undefined)
        assert.ok(resolvesIn(body, pointer), `${pointer} in ${JSON.stringify(body)}`)
  }
  const stillServes = async () =>
    assert.equal(storedIn(await caller.post(someThread())).source.outcome, 'created')
  afterEach(stillServes)

  test('threads with hostile fields are stored or get a 400', async () => {
    const prefer = fc.constantFrom('', 'handling=strict')
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(mutatedThread, prefer), { minLength: 1, maxLength: 16 }),
        async (calls) => {
          const replies = await Promise.all(
            calls.map(([body, prefer]) => caller.post(body, { prefer })),
          )
          for (const [at, reply] of replies.entries())
            judge(reply, JSON.parse(JSON.stringify(calls[at]?.[0])))
        },
      ),
      runs(30),
    )
  })

  test('a hostile thread that is stored and posted again is unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(mutatedThread, async (body) => {
        const first = await caller.post(body)
        judge(first, JSON.parse(JSON.stringify(body)))
        if (first.status === 200)
          assert.equal(storedIn(await caller.post(body)).source.outcome, 'unchanged')
      }),
      runs(20, RUN_MS / 2),
    )
  })

  test('any JSON and any text is stored or gets a 400', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(anyJson, fc.string({ unit: 'binary' })), async (body) =>
        judge(await caller.post(body)),
      ),
      runs(100),
    )
  })

  test('any bytes in any coding get a 400', async () => {
    const coding = fc.constantFrom('', 'gzip', 'br', 'deflate', 'zstd')
    const compress = fc.constantFrom(
      (bytes: Uint8Array) => bytes,
      gzipSync,
      brotliCompressSync,
      deflateSync,
      zstdCompressSync,
    )
    const bytes = fc.tuple(
      fc.uint8Array({ maxLength: 400 }),
      compress,
      fc.uint8Array({ maxLength: 20 }),
    )
    await fc.assert(
      fc.asyncProperty(coding, bytes, async (coding, [head, compress, tail]) => {
        const { status } = await caller.post(Buffer.concat([compress(head), tail]), {
          'content-encoding': coding,
        })
        assert.equal(status, 400)
      }),
      runs(150),
    )
  })

  test('any headers get an answer with a safe X-Request-Id', async () => {
    const names = [
      'prefer',
      'x-request-id',
      'accept',
      'content-encoding',
      'content-type',
      'traceparent',
      'x-forwarded-for',
      'origin',
      'range',
      'cookie',
    ]
    const headers = fc.dictionary(fc.constantFrom(...names), headerText, { maxKeys: 4 })
    await fc.assert(
      fc.asyncProperty(headers, async (headers) => {
        const { status, headers: answered } = await caller.post(someThread({ quotes: [] }), headers)
        assert.ok([200, 202, 400, 415].includes(status), `${status} for ${JSON.stringify(headers)}`)
        assert.match(answered.get('x-request-id') ?? '', /^[\x21-\x7e]{1,128}$/)
      }),
      runs(50, RUN_MS / 2),
    )
  })

  test('any path below /jobs gets a 404', async () => {
    await fc.assert(
      fc.asyncProperty(fc.webPath(), fc.webQueryParameters(), async (path, query) => {
        const { status } = await caller.get(`/jobs${path}?${query}`)
        assert.equal(status, 404)
      }),
      runs(100, 1_000),
    )
  })

  const deep: [it: string, body: string][] = [
    ['arrays in the body', nest(100_000, '[', ']')],
    ['objects in the body', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    ['a title', JSON.stringify(someThread({ title: 0 })).replace('0', nest(100_000, '[', ']'))],
    ['a quote', JSON.stringify(someThread({ quotes: 0 })).replace('0', nest(100_000, '[', ']'))],
    [
      'quotes in quotes',
      JSON.stringify(someThread({ quotes: 0 })).replace(
        '0',
        `${'[{"quotes":'.repeat(50_000)}1${'}]'.repeat(50_000)}`,
      ),
    ],
    ['a nest that does not end', '['.repeat(1_000_000)],
  ]
  for (const [it, body] of deep) {
    test(`100,000 levels of nesting get a 400: ${it}`, async () => {
      assert.equal((await caller.post(body)).status, 400)
      assert.equal((await caller.post(body, { prefer: 'handling=strict' })).status, 400)
    })
  }

  test('100,000 levels in an unknown field are refused, too', async () => {
    const body = JSON.stringify(someThread({ colour: 0 })).replace(
      '"colour":0',
      `"colour":${nest(100_000, '[', ']')}`,
    )
    const { errors } = problemIn(await caller.post(body), 400, 'request_invalid')
    assert.equal(errors?.[0]?.code, 'nesting_too_deep')
  })

  const many: [it: string, body: Body][] = [
    [
      'good quotes',
      someThread({ quotes: Array.from({ length: 100_000 }, (_, at) => ({ text: `q ${at}` })) }),
    ],
    ['bad quotes', someThread({ quotes: Array(100_000).fill({ text: 7, upVotes: '1' }) })],
    ['empty quotes', someThread({ quotes: Array(100_000).fill(null) })],
  ]
  for (const [it, body] of many) {
    test(`100,000 ${it} get a 400`, async () => {
      const { errors } = problemIn(await caller.post(body), 400, 'request_invalid')
      assert.equal(errors?.[0]?.code, 'too_many')
    })
  }

  test('10,000 quotes with every fault get a short 400', async () => {
    const body = someThread({
      quotes: Array(10_000).fill({
        text: '\ud800',
        createdAt: 'x',
        score: 'x',
        speaker: 7,
        a: 1,
        b: 2,
        replyingTo: 'nobody',
        externalId: 'q',
      }),
    })
    const reply = await caller.post(body, { prefer: 'handling=strict' })
    const { errors, total } = problemIn(reply, 400, 'request_invalid')
    assert.equal(errors?.length, 50)
    assert.ok((total ?? 0) > 50_000)
    assert.ok(reply.text.length < 50_000)
  })

  test.runIf(isFull)(
    'nearly half a million unknown fields are ignored, or counted with strict handling',
    async () => {
      // A body may have 500,000 JSON values, those of the thread included.
      const fields = Array.from({ length: 499_900 }, (_, at) => `"f${at}":1,`).join('')
      const body = JSON.stringify(someThread()).replace('{', `{${fields}`)
      storedIn(await caller.post(body))
      const { total } = problemIn(
        await caller.post(body, { prefer: 'handling=strict' }),
        400,
        'request_invalid',
      )
      assert.equal(total, 499_900)
    },
  )

  test('a field name of five million characters gets a short 400', async () => {
    const reply = await caller.post(
      { ...someThread(), ['a'.repeat(5_000_000)]: 1 },
      { prefer: 'handling=strict' },
    )
    problemIn(reply, 400, 'request_invalid')
    assert.ok(reply.text.length < 2_000)
  })

  test('the processes still run, and have logged no error', () => {
    for (const { child, log } of [sluice.api, ...sluice.workers]) {
      assert.equal(child.exitCode, null)
      assert.deepEqual(
        log.filter(
          ({ level, msg }) => level === 'error' || level === 'fatal' || msg === 'job.try_failed',
        ),
        [],
      )
    }
  })
})
