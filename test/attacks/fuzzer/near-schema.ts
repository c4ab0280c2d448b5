// Derives values from a JSON Schema: most of them valid, others at a bound or past it, of another
// type, absent or hostile.
import fc from 'fast-check'
import { hostileScalar } from '../support/hostile-values.ts'

/** What this reads of a JSON Schema. */
export interface JsonSchema {
  type?: string | string[]
  enum?: unknown[]
  format?: string
  maxLength?: number
  maxItems?: number
  properties?: Record<string, JsonSchema>
  items?: JsonSchema
}

const DATES = [
  '2024-05-01',
  '2024-05-01T09:30',
  '2024-05-01T09:30:00.123456+02',
  '0001-01-01',
  '0000-01-01',
  '9999-12-31T23:59:59Z',
]
/** More elements than this only cost time. The bound itself is met by elements that cost little. */
const USUAL_ITEMS = 4

/** A value in one of so many cases, else null. */
export function seldom<T>(arbitrary: fc.Arbitrary<T>, cases: number): fc.Arbitrary<T | null> {
  return fc.oneof({ weight: cases - 1, arbitrary: fc.constant(null) }, { weight: 1, arbitrary })
}

/** Values near a schema. */
export function nearSchema(schema: JsonSchema): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 200, arbitrary: valid(schema) },
    { weight: 1, arbitrary: pastBound(schema) },
    { weight: 4, arbitrary: hostileScalar },
  )
}

function valid(schema: JsonSchema): fc.Arbitrary<unknown> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  switch ([schema.type].flat()[0]) {
    case 'object':
      return objectNear(schema.properties ?? {})
    case 'array':
      return fc.array(nearSchema(schema.items ?? {}), { maxLength: USUAL_ITEMS })
    case 'number':
      return fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))
    case 'boolean':
      return fc.boolean()
    default:
      return schema.format === 'date-time' ? fc.constantFrom(...DATES) : stringNear(schema)
  }
}

/** An object with most of its known fields, and now and then an unknown one. */
function objectNear(properties: Record<string, JsonSchema>): fc.Arbitrary<unknown> {
  const known = Object.fromEntries(
    Object.entries(properties).map(([name, field]) => [name, nearSchema(field)]),
  )
  const missing = seldom(fc.constantFrom(...Object.keys(properties)), 6)
  const unknown = seldom(
    fc.tuple(fc.constantFrom('$gt', 'a.b', '__proto__', 'id', 'meta', ''), hostileScalar),
    4,
  )
  return fc
    .tuple(fc.record(known), missing, unknown)
    .map(([object, without, more]) => [
      ...Object.entries(object).filter(([name]) => name !== without),
      ...(more === null ? [] : [more]),
    ])
    .map(asOwnFields)
}

/** `__proto__` becomes a field as any other, as it does in parsed JSON. */
function asOwnFields(fields: [string, unknown][]): object {
  const own = {}
  for (const [name, value] of fields)
    Object.defineProperty(own, name, { value, enumerable: true, configurable: true })
  return own
}

function stringNear({ maxLength = 100 }: JsonSchema): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 20, arbitrary: fc.string({ minLength: 1, maxLength: 24 }) },
    { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 24 }) },
    { weight: 1, arbitrary: fc.constant('é'.repeat(Math.min(maxLength, 2_000))) },
  )
}

/** One more than the schema allows, as cheap as can be. */
function pastBound({ maxLength, maxItems }: JsonSchema): fc.Arbitrary<unknown> {
  if (maxLength !== undefined) return fc.constant('x'.repeat(maxLength + 1))
  if (maxItems !== undefined)
    return fc.constant(Array.from({ length: maxItems + 1 }, () => ({ text: 'a' })))
  return fc.constant({})
}
