import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { createThreadParser } from './parse-thread.ts'
import { DEFAULT_LIMITS } from './thread-request.ts'

const parse = createThreadParser(DEFAULT_LIMITS)
const source = { service: 'slack', externalId: 'C1', title: 'A thread' }
const normalised = (body: unknown) => {
  const parsed = parse(body, { strict: false })
  assert.ok(parsed.ok, JSON.stringify(parsed))
  return parsed.thread
}

const sources: [rule: string, fields: object, kept: object][] = [
  [
    'keeps every field',
    {
      channelName: 'n',
      channelId: 'i',
      description: 'd',
      url: 'u',
      upVotes: 1,
      downVotes: 2,
      score: 3,
    },
    {
      channelName: 'n',
      channelId: 'i',
      description: 'd',
      url: 'u',
      upVotes: 1,
      downVotes: 2,
      score: 3,
    },
  ],
  ['treats null as absent', { channelName: null, createdAt: null, upVotes: null }, {}],
  ['treats a blank string as absent', { description: ' \u00a0\n', url: '', createdAt: ' ' }, {}],
  ['keeps white space inside a kept value', { description: ' a  b ' }, { description: ' a  b ' }],
  [
    'writes dates in UTC with milliseconds',
    { createdAt: '2024-05-01T02:00+02' },
    { createdAt: '2024-05-01T00:00:00.000Z' },
  ],
  [
    'accepts negative and fractional votes',
    { upVotes: -1.5, score: 0 },
    { upVotes: -1.5, score: 0 },
  ],
  ['makes 0 of -0', { score: -0 }, { score: 0 }],
  ['keeps NUL', { description: 'a\0b' }, { description: 'a\0b' }],
  ['computes no score', { upVotes: 3, downVotes: 1 }, { upVotes: 3, downVotes: 1 }],
  ['ignores unknown fields', { tags: [{}], constructor: 1, hasOwnProperty: 'x' }, {}],
  [
    'accepts a title as long as its limit in code points',
    { title: '\u{1f600}'.repeat(2_000) },
    { title: '\u{1f600}'.repeat(2_000) },
  ],
]

const quotes: [rule: string, quotes: object[], kept: object[]][] = [
  ['may be none', [], []],
  ['ignores unknown fields', [{ text: 'a', likes: {} }], [{ text: 'a' }]],
  ['treats username as speaker', [{ text: 'a', username: 'ada' }], [{ text: 'a', speaker: 'ada' }]],
  [
    'prefers speaker if username differs',
    [{ text: 'a', speaker: 'ada', username: 'bob' }],
    [{ text: 'a', speaker: 'ada' }],
  ],
  [
    'uses username if speaker is blank',
    [{ text: 'a', speaker: ' ', username: 'bob' }],
    [{ text: 'a', speaker: 'bob' }],
  ],
  ['leaves out replyingTo null', [{ text: 'a', replyingTo: null }], [{ text: 'a' }]],
  [
    'keeps a replyingTo that matches nothing',
    [{ text: 'a', replyingTo: '9' }],
    [{ text: 'a', replyingTo: '9' }],
  ],
  [
    'keeps equal quotes without externalId apart',
    [{ text: 'a' }, { text: 'a' }],
    [{ text: 'a' }, { text: 'a' }],
  ],
  [
    'merges quotes of one externalId in the order sent, at the place of the first',
    [
      { externalId: '1', text: 'a', speaker: 'ada', score: 1 },
      { text: 'b' },
      { externalId: '1', text: 'c', username: 'bob', speaker: null },
    ],
    [{ externalId: '1', text: 'c', speaker: 'bob', score: 1 }, { text: 'b' }],
  ],
  [
    'treats externalIds that differ in white space as different',
    [
      { externalId: '1', text: 'a' },
      { externalId: '1 ', text: 'b' },
    ],
    [
      { externalId: '1', text: 'a' },
      { externalId: '1 ', text: 'b' },
    ],
  ],
  [
    'may have an externalId that is a name of the language',
    [{ externalId: '__proto__', text: 'a' }],
    [{ externalId: '__proto__', text: 'a' }],
  ],
  [
    "may carry the source's externalId",
    [{ externalId: 'C1', text: 'a' }],
    [{ externalId: 'C1', text: 'a' }],
  ],
]

describe('an accepted source', () => {
  for (const [rule, fields, kept] of sources) {
    it(rule, () =>
      assert.deepEqual(normalised({ ...source, ...fields, quotes: [] }), {
        source: { ...source, ...kept },
        quotes: [],
      }),
    )
  }

  it('reads only own properties', () => {
    const body = JSON.parse(
      '{"service":"x","externalId":"1","title":"t","quotes":[],"__proto__":{"url":"u","score":1}}',
    )
    assert.deepEqual(normalised(body), {
      source: { service: 'x', externalId: '1', title: 't' },
      quotes: [],
    })
    assert.equal(parse(Object.create({ ...source, quotes: [] }), { strict: true }).ok, false)
  })

  it('does not change the body', () => {
    const body = {
      ...source,
      description: ' ',
      quotes: [
        { text: 'a', externalId: '1' },
        { text: 'b', externalId: '1' },
      ],
    }
    const before = structuredClone(body)
    normalised(body)
    assert.deepEqual(body, before)
  })
})

describe('accepted quotes: a request', () => {
  for (const [rule, input, kept] of quotes) {
    it(rule, () => assert.deepEqual(normalised({ ...source, quotes: input }).quotes, kept))
  }
})
