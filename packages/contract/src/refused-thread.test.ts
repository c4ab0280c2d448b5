import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { createThreadParser, parseJson } from './parse-thread.ts'
import { DEFAULT_LIMITS } from './thread-request.ts'
import type { ValidationErrorCode } from './validation-errors.ts'

const parse = createThreadParser(DEFAULT_LIMITS)
const source = { service: 'slack', externalId: 'C1', title: 'A thread', quotes: [] }
const quote = { text: 'a' }
const withQuotes = (...quotes: unknown[]) => ({ ...source, quotes })

type Row = [rule: string, body: unknown, ...errors: [pointer: string, code: ValidationErrorCode][]]

const always: Row[] = [
  ['a body that is null', null, ['', 'type']],
  ['a body that is an array', [source], ['', 'type']],
  ['a body that is a string', '{}', ['', 'type']],
  [
    'an empty body, at each missing field',
    {},
    ['/service', 'required'],
    ['/externalId', 'required'],
    ['/title', 'required'],
    ['/quotes', 'required'],
  ],
  ['a required field that is null', { ...source, title: null }, ['/title', 'required']],
  [
    'a required field that is blank',
    { ...source, externalId: ' \u3000\t' },
    ['/externalId', 'required'],
  ],
  ['quotes that are null', { ...source, quotes: null }, ['/quotes', 'required']],
  ['quotes that are an object', { ...source, quotes: {} }, ['/quotes', 'type']],
  ['a title of another type', { ...source, title: 5 }, ['/title', 'type']],
  ['a service of another type, once', { ...source, service: ['slack'] }, ['/service', 'type']],
  ['a service that is not listed', { ...source, service: 'Slack' }, ['/service', 'enum']],
  ['votes as a string', { ...source, upVotes: '3' }, ['/upVotes', 'type']],
  ['votes as a blank string', { ...source, upVotes: '', score: false }, ['/score', 'type']],
  [
    'a score beyond a double',
    JSON.parse('{"service":"x","externalId":"1","title":"t","quotes":[],"score":1e400}'),
    ['/score', 'not_finite'],
  ],
  ['a date that does not exist', { ...source, createdAt: '2024-02-30' }, ['/createdAt', 'date']],
  ['a date as a number', { ...source, createdAt: 1714552200 }, ['/createdAt', 'type']],
  ['a lone surrogate', { ...source, description: 'a\ud800b' }, ['/description', 'not_well_formed']],
  ['a quote that is null', withQuotes(quote, null), ['/quotes/1', 'type']],
  ['a quote that is an array', withQuotes([]), ['/quotes/0', 'type']],
  [
    'a quote without text',
    withQuotes(quote, {}, { text: '' }),
    ['/quotes/1/text', 'required'],
    ['/quotes/2/text', 'required'],
  ],
  [
    'a quote field of another type',
    withQuotes({ text: 'a', externalId: 7, replyingTo: {} }),
    ['/quotes/0/externalId', 'type'],
    ['/quotes/0/replyingTo', 'type'],
  ],
  [
    'a username that is invalid, although speaker wins',
    withQuotes({ text: 'a', speaker: 'ada', username: 1 }),
    ['/quotes/0/username', 'type'],
  ],
  [
    'a speaker that is invalid, although username is sent',
    withQuotes({ text: 'a', speaker: {}, username: 'ada' }),
    ['/quotes/0/speaker', 'type'],
  ],
  [
    'a duplicate that is invalid by itself',
    withQuotes({ text: 'a', externalId: '1' }, { externalId: '1' }),
    ['/quotes/1/text', 'required'],
  ],
  ['one quote too many', withQuotes(...Array(10_001).fill(quote)), ['/quotes', 'too_many']],
  [
    'a channelName past its limit',
    { ...source, channelName: 'a'.repeat(2_001) },
    ['/channelName', 'too_long'],
  ],
  [
    'a channelId past its limit',
    { ...source, channelId: 'a'.repeat(2_001) },
    ['/channelId', 'too_long'],
  ],
  [
    'a description past its limit',
    { ...source, description: 'a'.repeat(20_001) },
    ['/description', 'too_long'],
  ],
  ['a url past its limit', { ...source, url: 'a'.repeat(2_049) }, ['/url', 'too_long']],
  [
    'a date past its limit',
    { ...source, createdAt: `2024-05-01T00:00:00.${'0'.repeat(2_000)}` },
    ['/createdAt', 'too_long'],
  ],
  [
    'a title past its limit in code points',
    { ...source, title: '\u{1f600}'.repeat(2_001) },
    ['/title', 'too_long'],
  ],
  [
    'an externalId past its limit',
    { ...source, externalId: 'a'.repeat(513) },
    ['/externalId', 'too_long'],
  ],
  [
    'an exportedId that no export has written',
    withQuotes({ text: 'a', exportedId: 'a'.repeat(25) }),
    ['/quotes/0/exportedId', 'type'],
  ],
  [
    'a replyingTo past the limit of externalId',
    withQuotes({ text: 'a', replyingTo: 'a'.repeat(513) }),
    ['/quotes/0/replyingTo', 'too_long'],
  ],
  [
    'a text past its limit',
    withQuotes({ text: 'a'.repeat(100_001) }),
    ['/quotes/0/text', 'too_long'],
  ],
  [
    'a speaker past its limit',
    withQuotes({ text: 'a', speaker: 'a'.repeat(2_001) }),
    ['/quotes/0/speaker', 'too_long'],
  ],
]

const strictOnly: Row[] = [
  ['an unknown field', { ...source, tags: [] }, ['/tags', 'unknown_field']],
  ['an unknown field that is null', { ...source, tags: null }, ['/tags', 'unknown_field']],
  [
    'an unknown field of a quote',
    withQuotes({ text: 'a', likes: 1 }),
    ['/quotes/0/likes', 'unknown_field'],
  ],
  [
    'a field of the source in a quote',
    withQuotes({ text: 'a', title: 'b' }),
    ['/quotes/0/title', 'unknown_field'],
  ],
  ['a name that has to be escaped', { ...source, 'a/b~c': 1 }, ['/a~1b~0c', 'unknown_field']],
  [
    'names of the language',
    JSON.parse(
      '{"service":"x","externalId":"1","title":"t","quotes":[],"__proto__":1,"constructor":1}',
    ),
    ['/__proto__', 'unknown_field'],
    ['/constructor', 'unknown_field'],
  ],
  [
    'a name too long to repeat, at its parent',
    { ...source, ['k'.repeat(201)]: 1 },
    ['', 'unknown_field'],
  ],
  [
    'a second quote of one externalId',
    withQuotes({ text: 'a', externalId: '1' }, { text: 'b', externalId: '1' }),
    ['/quotes/1/externalId', 'duplicate'],
  ],
  [
    'a reply to no quote of the request',
    withQuotes({ text: 'a', externalId: '1' }, { text: 'b', replyingTo: '2' }),
    ['/quotes/1/replyingTo', 'unmatched_reply'],
  ],
]

const strictToo: [rule: string, body: unknown][] = [
  [
    'a reply to a later quote',
    withQuotes({ text: 'b', replyingTo: '1' }, { text: 'a', externalId: '1' }),
  ],
  ['equal quotes without externalId', withQuotes(quote, quote)],
  [
    'every known field',
    {
      ...source,
      channelName: null,
      channelId: null,
      description: '',
      createdAt: null,
      url: null,
      upVotes: 1,
      downVotes: 1,
      score: 1,
    },
  ],
]

function errorsOf(body: unknown, strict: boolean): [string, string][] {
  const parsed = parse(body, { strict })
  return parsed.ok ? [] : parsed.errors.map(({ pointer, code }) => [pointer, code])
}

describe('a thread is refused for', () => {
  for (const [rule, body, ...errors] of always)
    it(rule, () => assert.deepEqual(errorsOf(body, false), errors))
})

describe('with strict handling, a thread is refused for', () => {
  for (const [rule, body, ...errors] of strictOnly) {
    it(rule, () => {
      assert.deepEqual(errorsOf(body, true), errors)
      assert.deepEqual(errorsOf(body, false), [])
    })
  }
  for (const [rule, body] of strictToo)
    it(`not for ${rule}`, () => assert.deepEqual(errorsOf(body, true), []))
})

describe('a refusal', () => {
  it('names the field and the bound', () => {
    const parsed = parse({ ...source, title: 'a'.repeat(2_001) }, { strict: false })
    assert.equal(
      parsed.ok ? '' : parsed.errors[0]?.message,
      'title must have at most 2000 characters (Unicode code points).',
    )
  })

  it('lists 50 errors and counts all, also those of strict handling', () => {
    const parsed = parse(withQuotes(...Array(60).fill({ likes: 1 })), { strict: true })
    assert.deepEqual(parsed.ok || [parsed.errors.length, parsed.total], [50, 120])
  })

  it('uses the limits that the parser was created with', () => {
    const small = createThreadParser({ ...DEFAULT_LIMITS, quotes: 1, text: 3 })
    const parsed = small(withQuotes({ text: 'abcd' }), { strict: false })
    assert.deepEqual(parsed.ok || parsed.errors.map(({ code }) => code), ['too_long'])
    assert.equal(small(withQuotes(quote, quote), { strict: false }).ok, false)
  })
})

describe('a text that is not JSON is refused at its position', () => {
  it.each([
    ['{"service": slack}', 12, 1, 13],
    ['{"quotes": [\n  { "text": \'a\' }\n] }', 25, 2, 13],
    ['\ufeff[1, 2,]', 6, 1, 7],
    ['{"speaker": "é", "text": "😀", "score": NaN, "upVotes": NaN }', 40, 1, 41],
    ['{"title": "a', 12, 1, 13],
    ['{"title":', 9, 1, 10],
    ['{"title": "a"} {"title": "b"}', 15, 1, 16],
  ])('%s', (text, position, line, column) => {
    const parsed = parseJson(Buffer.from(text), DEFAULT_LIMITS)
    assert.ok(!parsed.ok)
    const place = `at position ${position} (line ${line} column ${column}).`
    assert.ok(parsed.errors[0]?.message.includes(`not valid JSON ${place}`), JSON.stringify(parsed))
  })
})
