import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { createThreadParser } from './parse-thread.ts'
import { DEFAULT_LIMITS, SERVICES } from './thread-request.ts'
import { VALIDATION_ERROR_CODES, type ValidationError } from './validation-errors.ts'

const parse = createThreadParser(DEFAULT_LIMITS)
const codes: readonly string[] = VALIDATION_ERROR_CODES

const hostile = fc.oneof(
  fc.constantFrom(
    null,
    undefined,
    true,
    0,
    -0,
    1e308,
    Number.POSITIVE_INFINITY,
    Number.NaN,
    '',
    ' ',
    '\ud800',
    '\0',
    '2024-05-01',
    '2024-02-30',
  ),
  fc.constantFrom({}, [], [[]], [null], { length: 3 }, { quotes: [] }, { text: 'a' }),
  fc.string({ unit: 'binary', maxLength: 5 }),
  fc.jsonValue({ maxDepth: 3 }),
)
const name = fc.constantFrom(
  'title',
  'text',
  'quotes',
  'speaker',
  'username',
  'externalId',
  'replyingTo',
  'createdAt',
  'score',
  '__proto__',
  'constructor',
  'toString',
  'a/b~c',
  '',
)
const mutations = fc.array(fc.record({ at: fc.option(fc.nat(3)), name, value: hostile }), {
  maxLength: 4,
})

const fewIds = fc.constantFrom('1', '2', '__proto__', ' 1')
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 3 })
const votes = {
  upVotes: maybe(fc.double({ noNaN: true, noDefaultInfinity: true })),
  downVotes: maybe(fc.integer()),
  score: maybe(fc.integer()),
}
const quote = fc.record(
  {
    text: fc.constantFrom('a', ' b '),
    externalId: maybe(fewIds),
    speaker: maybe(fc.constantFrom('ada', '')),
    username: maybe(fc.constant('bob')),
    createdAt: maybe(fc.constant('2024-05-01T02:00+02')),
    replyingTo: maybe(fewIds),
    ...votes,
  },
  { requiredKeys: ['text'] },
)
const thread = fc.record(
  {
    service: fc.constantFrom(...SERVICES),
    externalId: fewIds,
    title: fc.constant('t'),
    description: maybe(fc.constant(' d')),
    createdAt: maybe(fc.constant('2024-05-01')),
    url: maybe(fc.constant('u')),
    quotes: fc.array(quote, { maxLength: 4 }),
    ...votes,
  },
  { requiredKeys: ['service', 'externalId', 'title', 'quotes'] },
)

describe('the check of a thread', () => {
  it('never throws, and lists each fault once, at a place that the body has or should have', () => {
    fc.assert(fc.property(fc.oneof(hostile, mutated()), fc.boolean(), faultsAreSound), {
      numRuns: 5_000,
    })
  })

  it('accepts every valid thread', () => {
    fc.assert(
      fc.property(thread, (body) => assert.ok(parse(body, { strict: false }).ok)),
      { numRuns: 1_000 },
    )
  })

  it('accepts a normalised thread unchanged, also after a round trip through JSON', () => {
    fc.assert(fc.property(fc.oneof(thread, mutated()), normalisingTwiceIsOnce), { numRuns: 5_000 })
  })

  it('is never more lenient when it is strict', () => {
    fc.assert(
      fc.property(fc.oneof(thread, mutated()), (body) => {
        const [lenient, strict] = [parse(body, { strict: false }), parse(body, { strict: true })]
        if (strict.ok) assert.deepEqual(lenient, strict)
      }),
    )
  })
})

function mutated(): fc.Arbitrary<unknown> {
  return fc.tuple(thread, mutations).map(([body, changes]) => {
    for (const { at, name, value } of changes) {
      const target: object = at === null ? body : (body.quotes?.[at] ?? body)
      if (typeof target === 'object')
        Object.defineProperty(target, name, {
          value,
          enumerable: true,
          configurable: true,
          writable: true,
        })
    }
    return body
  })
}

function faultsAreSound(body: unknown, strict: boolean): void {
  const parsed = parse(body, { strict })
  if (parsed.ok) return
  assert.equal(parsed.errors.length, Math.min(parsed.total, 50))
  assert.ok(parsed.total > 0)
  const seen = parsed.errors.map(({ pointer, code }) => `${code} ${pointer}`)
  assert.deepEqual([...new Set(seen)], seen)
  for (const fault of parsed.errors) assertPointsIntoBody(body, fault)
}

function assertPointsIntoBody(body: unknown, { pointer, code, message }: ValidationError): void {
  assert.ok(codes.includes(code), code)
  assert.ok(message.length > 0)
  const path = pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const parent = path.slice(0, -1).reduce(ownValue, body)
  const key = path.at(-1)
  if (code === 'required') assert.ok(key !== undefined && isAbsent(ownValue(parent, key)), pointer)
  else assert.ok(key === undefined || Object.hasOwn(Object(parent), key), pointer)
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || String(value).trim() === ''
}

function ownValue(parent: unknown, key: string): unknown {
  assert.ok(typeof parent === 'object' && parent !== null)
  return Object.getOwnPropertyDescriptor(parent, key)?.value
}

function normalisingTwiceIsOnce(body: unknown): void {
  const once = parse(body, { strict: false })
  if (!once.ok) return
  const { source, quotes } = once.thread
  const again = { ...source, quotes }
  // The warnings are about unknown fields, which are gone.
  const expected = { ok: true, thread: once.thread }
  assert.deepEqual(parse(again, { strict: false }), expected)
  assert.deepEqual(parse(JSON.parse(JSON.stringify(again)), { strict: false }), expected)
  for (const fields of [source, ...quotes])
    assert.ok(!Object.values(fields).some((value) => value == null || value === ''))
}
