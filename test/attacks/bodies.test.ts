// Attacks by the content of a body: operators, names of the language, numbers, repeated names, and
// bombs.
import assert from 'node:assert/strict'
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { newJobId } from '@sluice/queue'
import { beforeSuite } from '@sluice/test-support'
import { afterEach, describe, test } from 'vitest'
import { type Caller, createCaller } from '../e2e/support/caller.ts'
import { problemIn, storedIn } from '../e2e/support/read-reply.ts'
import { type Body, someThread } from '../e2e/support/some-thread.ts'
import { watchPeak } from '../support/edge-support.ts'
import { scale } from '../support/scale.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { assertUnharmed } from './support/unharmed.ts'

const MIB = 1024 * 1024
const OPERATORS = [
  '$gt',
  '$where',
  '$externalId',
  '$$ROOT',
  '$meta.version',
  'a.b',
  'meta.stamp',
  '.',
  '__proto__',
  'constructor',
]

describe('the content of a body', () => {
  let sluice: TestSluice
  let caller: Caller
  beforeSuite(async (t) => {
    sluice = await startSluice(t)
    caller = createCaller(sluice)
  })
  const post = async (body: Body | string) => storedIn(await caller.post(body))
  afterEach(async () => assert.equal((await post(someThread())).source.outcome, 'created'))

  /** The stored documents of a thread. */
  async function documentsOf(id: string) {
    const [source] = await sluice.db
      .collection<{ _id: string }>('sources')
      .find({ _id: id })
      .toArray()
    const quotes = await sluice.db.collection('quotes').find({ sourceId: id }).toArray()
    return { source, quotes }
  }

  test('names that are operators, paths or prototypes are stored nowhere', async () => {
    const hostile = OPERATORS.map((name) => `${JSON.stringify(name)}:{"$set":{"title":"x"}}`).join(
      ',',
    )
    const withNames = (json: string) => json.replaceAll('{', `{${hostile},`)
    const plain = someThread({ quotes: [{ text: 'a', externalId: 'q' }] })
    const { source } = await post(withNames(JSON.stringify(plain)))
    const again = await post(withNames(JSON.stringify({ ...plain, title: 'b' })))
    assert.equal(again.source.outcome, 'updated')
    const stored = await documentsOf(source.id)
    assert.equal(stored.quotes.length, 1)
    for (const name of namesIn(stored)) assert.doesNotMatch(name, /^$|[$.]|__proto__|constructor/)
  })

  async function postLiterally(text: string): Promise<void> {
    const fields = {
      title: text,
      externalId: text,
      channelName: text,
      channelId: text,
      description: text,
      url: text,
    }
    const quote = { text, externalId: text, speaker: text, replyingTo: text }
    const first = await post(
      someThread({ ...fields, title: 'first', quotes: [{ ...quote, text: 'first' }] }),
    )
    const second = await post(someThread({ ...fields, quotes: [quote] }))
    assert.equal(second.source.id, first.source.id)
    assert.deepEqual([second.source.outcome, second.quotes[0]?.outcome], ['updated', 'updated'])
    const stored = await documentsOf(second.source.id)
    assert.partialDeepStrictEqual(stored.source ?? {}, fields)
    assert.deepEqual(
      stored.quotes.map((document) => document.text),
      [text],
    )
  }

  test('texts that are operators are stored literally, in every field and as ids', async () => {
    await Promise.all(OPERATORS.map(postLiterally))
  })

  test('an id that is a pattern or a query finds only itself', async () => {
    const ids = [
      '.*',
      '^',
      '{"$ne":null}',
      '[object Object]',
      '%',
      '*',
      '\0',
      '�',
      'a\u0300',
      '\u00e0',
    ]
    const outcomes = await Promise.all(
      ids.map((externalId) => post(someThread({ externalId, service: 'custom' }))),
    )
    assert.deepEqual([...new Set(outcomes.map(({ source }) => source.outcome))], ['created'])
    assert.equal(new Set(outcomes.map(({ source }) => source.id)).size, ids.length)
  })

  test('a prototype in one body gives no field to a later request', async () => {
    const polluting =
      '{"__proto__":{"url":"evil","upVotes":9},"constructor":{"prototype":{"url":"evil","upVotes":9}},'
    await post(JSON.stringify(someThread()).replace('{', polluting))
    const { source } = await post(someThread())
    assert.ok(!('url' in source) && !('upVotes' in source))
  })

  const numbers: [it: string, json: string, pointer: string][] = [
    ['of a million digits', '1'.repeat(1_000_000), '/upVotes'],
    ['with an exponent of a million digits', `1e${'9'.repeat(1_000_000)}`, '/upVotes'],
    ['below the least double', '-1e309', '/upVotes'],
  ]
  for (const [it, json, pointer] of numbers) {
    test(`a number ${it} is refused as not finite`, async () => {
      const body = JSON.stringify(someThread({ upVotes: 0 })).replace(
        '"upVotes":0',
        `"upVotes":${json}`,
      )
      const { errors } = problemIn(await caller.post(body), 400, 'request_invalid')
      assert.deepEqual(
        errors?.map(({ pointer, code }) => [pointer, code]),
        [[pointer, 'not_finite']],
      )
    })
  }

  test('a number between two doubles is stored as the nearer one', async () => {
    const body = JSON.stringify(someThread({ upVotes: 0 })).replace(
      '"upVotes":0',
      '"upVotes":9007199254740993,"score":1e-400',
    )
    const { source } = await post(body)
    assert.deepEqual([source.upVotes, source.score], [2 ** 53, 0])
  })

  test('the last of repeated names counts, at every level, and the others are not checked', async () => {
    const body = JSON.stringify(someThread({ externalId: 'repeated' }))
      .replace('{', '{"quotes":7,"externalId":{"$gt":""},"service":"none",')
      .replace('"text":', '"text":7,"text":')
    const { source, quotes } = await post(body)
    assert.deepEqual(
      [source.externalId, source.service, quotes[0]?.text],
      ['repeated', 'slack', 'A split one, for my wrists.'],
    )
  })

  test('one lone surrogate in a line of an import refuses that line alone, also in its record', async () => {
    const line = (title: string) =>
      JSON.stringify(someThread({ title: 'T' })).replace('"T"', `"${title}"`)
    const withId = JSON.stringify(someThread({ externalId: 'I', title: 1 })).replace(
      '"I"',
      '"\\\\ud800\\ud800"',
    )
    const body = [
      line('a'),
      line('\\udc00'),
      line('\\ud83c\\udfb9'),
      '{"\\udbff":"\\ud800"}',
      withId,
    ].join('\n')
    const importId = newJobId()
    const { text } = await caller.postImport(body, {
      'import-id': importId,
      prefer: 'handling=strict',
    })
    assert.match(text, /"received":5,"created":2,"updated":0,"unchanged":0,"failed":3/)
    assert.match(text, /"index":1,[^\n]*"code":"not_well_formed"/)
    const { summary, problems } = await until('the record of the import', async () => {
      const found = JSON.parse((await caller.get(`/batches/${importId}`)).text)
      return found.state === 'completed' && found
    })
    assert.deepEqual([summary.received, summary.created, summary.failed], [5, 2, 3])
    assert.match(JSON.stringify(problems[1]), /"pointer":"\/\ufffd"/)
    assert.equal(problems[2].externalId, '\\ud800\ufffd')
  })

  const bombs: [coding: string, compress: (bytes: Buffer) => Buffer][] = [
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    [
      'br',
      (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
    ],
    ['zstd', zstdCompressSync],
  ]
  /**
   * What one bomb may add to the memory of the API, in MiB: a few chunks and the garbage of a
   * moment.
   */
  const BOMB_MIB = 150
  for (const [coding, compress] of scale(bombs.slice(0, 1), bombs)) {
    test(`a ${coding} bomb of 150 MiB in an import is a 413, and takes little memory`, async () => {
      const bomb = compress(Buffer.alloc(150 * MIB, ' '))
      const growth = await watchPeak(sluice.api)
      problemIn(
        await caller.postImport(bomb, { 'content-encoding': coding }),
        413,
        'body_too_large',
      )
      const grown = await growth()
      assert.ok(grown < BOMB_MIB, `${Math.round(grown)} MiB more at its peak`)
    })
  }

  test('leaves the processes running, with no error in their logs', () => assertUnharmed(sluice))
})

/** The names of all fields in a value, at any depth. */
function namesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null || value instanceof Date || '_bsontype' in value)
    return []
  if (Array.isArray(value)) return value.flatMap(namesIn)
  return Object.entries(value).flatMap(([name, field]) => [name, ...namesIn(field)])
}
