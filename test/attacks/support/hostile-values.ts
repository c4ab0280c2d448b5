import fc from 'fast-check'
import { quoteFields, sourceFields } from '../../e2e/support/schema-fields.ts'
import { type Body, someThread } from '../../e2e/support/some-thread.ts'

const STRINGS = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ufeff',
  '\ud800',
  'a\udc00',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '$where',
  '$gt',
  'a.b',
  '.',
  '$',
  '{"$ne":null}',
  '../../etc/passwd',
  '<script>alert(1)</script>',
  "'; DROP TABLE sources; --",
  '%s%n',

  '{{7*7}}',
  '\r\nX: y',
  '\u202egnirts',
  '🎹'.repeat(300),
  'a'.repeat(600),
  'é'.normalize('NFD'),
  '0000-00-00',
  '2024-02-30',
  '9999-12-31T23:59:59-23:59',
  '1e308',
  'NaN',
  '-0',
  'null',
]
const NUMBERS = [
  0,
  -0,
  1e308,
  -1e308,
  Number.MAX_VALUE,
  Number.MIN_VALUE,
  5e-324,
  2 ** 53 + 2,
  -1,
  0.1,
  1e21,
]
const FIELDS = [
  ...new Set([...sourceFields, ...quoteFields].map(({ name }) => name)),
  'quotes',
  '__proto__',
  'constructor',
  'toJSON',
  '$where',
  'a/b',
  'a~b',
  '',
  'length',
  '_id',
  'meta',
  'tenant',
]

const text = fc.oneof(fc.constantFrom(...STRINGS), fc.string({ unit: 'binary', maxLength: 20 }))
const number = fc.oneof(
  fc.constantFrom(...NUMBERS),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
)
/** A text, a number, a boolean or null that some code could stumble over. */
export const hostileScalar = fc.oneof(text, number, fc.boolean(), fc.constant(null))
const field = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...FIELDS) },
  fc.string({ maxLength: 10 }),
)
const some = fc.oneof(
  hostileScalar,
  fc.array(hostileScalar, { maxLength: 3 }),
  fc.array(fc.tuple(field, hostileScalar), { maxLength: 3 }).map(Object.fromEntries),
)

/** Valid requests with up to four hostile fields, in the source or in one of its quotes. */
export const mutatedThread: fc.Arbitrary<Body> = fc
  .record({
    source: fc.array(fc.tuple(field, some), { maxLength: 2 }),
    quotes: fc.array(fc.array(fc.tuple(field, some), { maxLength: 2 }), { maxLength: 4 }),
  })
  .map(({ source, quotes }) =>
    withOwn(
      someThread({ quotes: quotes.map((fields) => withOwn({ text: 'one two' }, fields)) }),
      source,
    ),
  )

/** Any JSON value. */
export const anyJson = fc
  .jsonValue({ noUnicodeString: false, maxDepth: 4 })
  .map((value) => JSON.stringify(value))

/** Any value of a header that can be sent. */
export const headerText = fc.string({
  unit: fc
    .integer({ min: 0x21, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
  maxLength: 60,
})

/** `__proto__` becomes a field as any other, as it does in parsed JSON. */
function withOwn(body: Body, fields: [string, unknown][]): Body {
  const own = { ...body }
  for (const [name, value] of fields)
    Object.defineProperty(own, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    })
  return own
}
