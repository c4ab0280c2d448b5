import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { createThreadParser } from './parse-thread.ts'
import { DEFAULT_LIMITS } from './thread-request.ts'

const parse = createThreadParser(DEFAULT_LIMITS)
/** Time of the processor, not of the clock: the test must not fail on a busy machine. */
const MAX_MS = 2_000
const BODY = DEFAULT_LIMITS.bodyBytes
const NESTED = 1_000_000

const bodies: [what: string, makeBody: () => unknown, total: number][] = [
  [
    'three million empty quotes',
    () => ({ ...source(), quotes: Array.from({ length: 3_000_000 }, () => ({})) }),
    1,
  ],
  [
    'as many wrong fields as quotes may have',
    () => ({ ...source(), quotes: Array.from({ length: 10_000 }, wrongQuote) }),
    90_000,
  ],
  ['a million unknown fields', () => withFields(source(), 1_000_000), 0],
  [
    'a thousand unknown fields in each of a thousand quotes',
    () => ({
      ...source(),
      quotes: Array.from({ length: 1_000 }, () => withFields({ text: 'a' }, 1_000)),
    }),
    0,
  ],
  ['a title as long as a body', () => ({ ...source(), title: '\u{1f600}'.repeat(BODY / 4) }), 1],
  ['a blank title as long as a body', () => ({ ...source(), title: ' '.repeat(BODY) }), 1],
  [
    'a lone surrogate at the end of a body',
    () => ({ ...source(), title: `${'a'.repeat(BODY)}\ud800` }),
    2,
  ],
  [
    'a date with decimals as long as a body',
    () => ({ ...source(), createdAt: `2024-05-01T00:00:00.${'1'.repeat(BODY)}` }),
    1,
  ],
  [
    'a date that breaks at the end of a body',
    () => ({ ...source(), createdAt: `2024-05-01T00:00:00.${'1'.repeat(BODY)}!` }),
    2,
  ],
  [
    'an array nested as deep as a body is long',
    () => ({ ...source(), title: nested(NESTED), junk: nested(NESTED) }),
    1,
  ],
  [
    'a quote nested as deep as a body is long',
    () => ({ ...source(), quotes: [nested(NESTED), { text: nested(NESTED) }] }),
    2,
  ],
  [
    'long ids that differ at their end',
    () => ({
      ...source(),
      quotes: Array.from({ length: 10_000 }, (_, i) => ({
        text: 'a',
        externalId: `${'i'.repeat(500)}${i}`,
      })),
    }),
    0,
  ],
]

describe('a hostile body is checked in moments:', () => {
  for (const [what, makeBody, total] of bodies) {
    it(what, () => {
      const body = makeBody()
      for (const strict of [false, true]) {
        const before = process.cpuUsage()
        const parsed = parse(body, { strict })
        const took = process.cpuUsage(before).user / 1_000
        assert.ok(took < MAX_MS, `took ${took} ms`)
        assert.ok(parsed.ok || parsed.errors.length <= 50)
        if (!strict) assert.equal(parsed.ok ? 0 : parsed.total, total)
      }
    })
  }

  it('the answer never repeats a long value', () => {
    const parsed = parse(
      { ...source(), title: 't'.repeat(BODY), service: 's'.repeat(BODY), ['k'.repeat(BODY)]: 1 },
      { strict: true },
    )
    assert.ok(JSON.stringify(parsed).length < 2_000)
  })
})

function source(): Record<string, unknown> {
  return { service: 'x', externalId: '1', title: 't', quotes: [] }
}

function wrongQuote() {
  return {
    text: 1,
    externalId: {},
    speaker: [],
    username: 1,
    createdAt: 1,
    replyingTo: 1,
    upVotes: 'a',
    downVotes: {},
    score: [],
  }
}

/** Parsed, as a body is: making so many fields otherwise takes longer than checking them. */
function withFields(object: object, count: number): object {
  const fields = Array.from({ length: count }, (_, i) => `"k${i}":0`)
  return JSON.parse(`${JSON.stringify(object).slice(0, -1)},${fields.join(',')}}`)
}

function nested(depth: number): unknown {
  let value: unknown = []
  for (let i = 0; i < depth; i++) value = [value]
  return value
}
