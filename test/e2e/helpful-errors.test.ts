import assert from 'node:assert/strict'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { type Caller, createCaller, type Reply } from './support/caller.ts'
import { acceptedIn, problemIn, storedIn } from './support/read-reply.ts'
import { someQuote, someThread } from './support/some-thread.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

const linesOf = ({ text }: Reply) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('an answer says what to do about a fault', () => {
  let sluice: SharedSluice
  let caller: Caller
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    caller = createCaller(sluice)
  })

  const services: [sent: string, says: RegExp][] = [
    ['Slack', /Did you mean slack\?/],
    ['playstore', /Did you mean play_store\?/],
    ['redit', /Did you mean reddit\?/],
    ['gmail', /Did you mean email\?/],
    ['a diary', /Send custom for another kind of source\./],
    ['constructor', /Send custom/],
  ]
  for (const [service, says] of services) {
    test(`the unknown service ${service} gets a hint`, async () => {
      const { errors } = problemIn(
        await caller.post(someThread({ service })),
        400,
        'request_invalid',
      )
      assert.deepEqual([errors?.[0]?.pointer, errors?.[0]?.code], ['/service', 'enum'])
      assert.match(errors?.[0]?.message ?? '', says)
    })
  }

  test('a key in Authorization is pointed to x-api-key, and is not repeated', async () => {
    const withoutKey = createCaller({ url: sluice.url })
    const reply = await withoutKey.post(someThread(), { authorization: `Bearer ${sluice.key}` })
    const { detail } = problemIn(reply, 403, 'api_key_invalid')
    assert.match(detail, /Send the key in x-api-key, not in Authorization/)
    assert.ok(!reply.text.includes(sluice.key))
    for (const authorization of ['', 'Bearer abc']) {
      const other = await withoutKey.post(someThread(), { authorization })
      assert.doesNotMatch(problemIn(other, 403, 'api_key_invalid').detail, /Authorization/)
    }
  })

  test('an empty key is called empty, as a shell sends it whose variable is not set', async () => {
    const { detail } = problemIn(
      await caller.get('/sources', { 'x-api-key': ' ' }),
      403,
      'api_key_invalid',
    )
    assert.equal(detail, 'The header x-api-key is empty.')
  })

  test('an empty body is called empty', async () => {
    for (const body of ['', ' \r\n']) {
      const { detail, errors } = problemIn(await caller.post(body), 400, 'json_invalid')
      assert.equal(detail, 'The body is empty.')
      assert.equal(errors?.[0]?.code, 'not_json')
    }
  })

  test('an import without items is called empty', async () => {
    for (const prefer of ['', 'respond-async']) {
      for (const body of ['', '\n \n'])
        assert.match(
          problemIn(await caller.postImport(body, { prefer }), 400, 'request_invalid').detail,
          /is empty/,
        )
      assert.match(
        problemIn(await caller.postImport('[]', { ...JSON_TYPE, prefer }), 400, 'request_invalid')
          .detail,
        /is empty/,
      )
    }
  })

  test('a fault in an import names its line, which counts blank ones, and its index', async () => {
    const body = [
      '',
      JSON.stringify(someThread()),
      ' ',
      '',
      '{"title":1}',
      '{',
      JSON.stringify(someThread()),
    ].join('\r\n')
    const lines = linesOf(await caller.postImport(body))
    assert.deepEqual(
      lines.slice(0, -1).map(({ index, line, status }) => [index, line, status]),
      [
        [0, undefined, 200],
        [1, 5, 400],
        [2, 6, 400],
        [3, undefined, 200],
      ],
    )
  })

  test('a fault of an import that nobody waits for names its line too', async () => {
    const accepted = await caller.postImport('\n{"title":1}', { prefer: 'respond-async' })
    assert.equal(accepted.status, 202)
    const [problem] = JSON.parse(accepted.text).problems
    assert.deepEqual([problem.index, problem.line], [0, 2])
  })

  test('lines that curl has joined get a hint', async () => {
    const joined = JSON.stringify(someThread()) + JSON.stringify(someThread())
    const [line] = linesOf(await caller.postImport(joined))
    assert.match(line.problem.detail, /--data-binary/)
    assert.match(problemIn(await caller.post(joined), 400, 'json_invalid').detail, /--data-binary/)
    const [other] = linesOf(await caller.postImport(`${JSON.stringify(someThread())} ]`))
    assert.doesNotMatch(other.problem.detail, /--data-binary/)
  })

  describe('warnings name unknown fields that look like known ones', () => {
    const thread = () => someQuote({ user: 'ada' })
    const warnings = [
      {
        pointer: '/quotes/0/user',
        code: 'unknown_field',
        message: 'user is not a field of a quote and was ignored. Did you mean speaker?',
      },
    ]

    test('in the answers 200, 202 and 400', async () => {
      assert.deepEqual(storedIn(await caller.post(thread())).warnings, warnings)
      assert.deepEqual(
        acceptedIn(await caller.post(thread(), { prefer: 'respond-async' })).warnings,
        warnings,
      )
      const invalid = await caller.post({ ...thread(), title: 7 })
      assert.deepEqual(problemIn(invalid, 400, 'request_invalid').warnings, warnings)
    })

    test('of a text that is parsed in another thread', async () => {
      const description = 'x'.repeat(15_000)
      const quotes = Array.from({ length: 40 }, () => ({ text: description, user: 'ada' }))
      assert.deepEqual(storedIn(await caller.post(someThread({ quotes }))).warnings, warnings)
    })

    test('in the items of an import, stored and refused', async () => {
      const body = [thread(), { ...thread(), title: 7 }, someThread()]
        .map((item) => JSON.stringify(item))
        .join('\n')
      const [stored, refused, other] = linesOf(await caller.postImport(body))
      assert.deepEqual(stored.warnings, warnings)
      assert.deepEqual(refused.problem.warnings, warnings)
      assert.equal('warnings' in other, false)
    })

    test('and are absent where nothing is to be said', async () => {
      assert.equal('warnings' in storedIn(await caller.post(someThread({ colour: 'red' }))), false)
    })
  })
})
