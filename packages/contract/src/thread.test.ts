import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { effectiveScore, type Votes } from './field-values.ts'
import { createThreadParser } from './parse-thread.ts'
import { DEFAULT_LIMITS, ISO_DATE, ThreadRequestSchema } from './thread-request.ts'

const cases: [rule: string, votes: Votes, score: number | undefined][] = [
  ['the one that was sent', { upVotes: 5, downVotes: 2, score: 9 }, 9],
  ['the one that was sent, also if it is 0', { upVotes: 5, score: 0 }, 0],
  ['upVotes minus downVotes', { upVotes: 5, downVotes: 2 }, 3],
  ['upVotes if downVotes are missing', { upVotes: 5 }, 5],
  ['0 minus downVotes if upVotes are missing', { downVotes: 2 }, -2],
  ['nothing if neither is known', {}, undefined],
  [
    'nothing if it would overflow',
    { upVotes: Number.MAX_VALUE, downVotes: -Number.MAX_VALUE },
    undefined,
  ],
]

describe('the score is', () => {
  for (const [rule, votes, score] of cases)
    it(rule, () => assert.equal(effectiveScore(votes), score))
})

describe('a thread in normal form', () => {
  const schema = ThreadRequestSchema(DEFAULT_LIMITS)
  const { quotes: _, ...sourceProperties } = schema.properties
  const quoteProperties = schema.properties.quotes.items.properties
  const parse = createThreadParser(DEFAULT_LIMITS)
  const parsed = parse(
    {
      ...inputsOf(sourceProperties),
      quotes: [inputsOf(quoteProperties), { text: 'a', username: 'bob' }],
    },
    { strict: false },
  )
  assert.ok(parsed.ok, JSON.stringify(parsed))
  const [first, second] = parsed.thread.quotes

  it('has every field of the schema', () => {
    const { username: _username, ...quoteFields } = outputsOf(quoteProperties)
    assert.deepEqual(parsed.thread.source, outputsOf(sourceProperties))
    assert.deepEqual(first, quoteFields)
    assert.deepEqual(second, { text: 'a', speaker: 'bob' })
  })

  it('has the same JSON, however a request orders its fields and names its speaker', () => {
    const fields = { text: 'a', speaker: 'ada', createdAt: '2024-05-01', score: 1 }
    const { speaker: username, ...rest } = fields
    const variants = [
      fields,
      Object.fromEntries(Object.entries(fields).reverse()),
      { ...rest, username },
    ]
    const texts = variants.map((quote) => {
      const body = { quotes: [quote], ...inputsOf(sourceProperties) }
      return JSON.stringify(parse(body, { strict: true }))
    })
    assert.deepEqual([...new Set(texts)], texts.slice(0, 1))
  })
})

type Properties = Record<string, object>
type Schema = { type?: unknown; format?: string; enum?: unknown[]; examples?: unknown[] }

/** A valid value for each property; dates are not in normal form. */
function inputsOf(properties: Properties): Record<string, unknown> {
  return mapProperties(properties, ({ isDate, value }) => (isDate ? '2024-05-01T02:00+02' : value))
}

/** The values of `inputsOf` in normal form. */
function outputsOf(properties: Properties): Record<string, unknown> {
  return mapProperties(properties, ({ isDate, value }) =>
    isDate ? '2024-05-01T00:00:00.000Z' : value,
  )
}

function mapProperties(
  properties: Properties,
  choose: (property: { isDate: boolean; value: unknown }) => unknown,
) {
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      const { type, format, enum: values, examples }: Schema = property
      const text = values?.[0] ?? examples?.[0] ?? `a ${name}`
      const value = [type].flat()[0] === 'number' ? 7 : text
      return [name, choose({ isDate: format === ISO_DATE, value })]
    }),
  )
}
