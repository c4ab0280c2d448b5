import assert from 'node:assert/strict'
import { Type as TypeBox } from 'typebox'
import { test } from 'vitest'
import { Type } from './json-schema.ts'

/** The texts of schemas that use every builder. */
function built(type: typeof Type): string[] {
  const text = type.String({ maxLength: 3, description: 'A text.' })
  const all = [
    ...[
      text,
      type.Number({ minimum: 1 }),
      type.Integer(),
      type.Boolean(),
      type.Unknown({ title: 'Anything' }),
    ],
    ...[
      type.Literal('a', { title: 'A' }),
      type.Literal(3),
      type.Literal(true),
      type.Enum(['a', 'b'], { type: 'string' }),
    ],
    ...[
      type.Unsafe({ type: ['string', 'null'] }),
      type.Union([text, type.Number()], { title: 'Either' }),
    ],
    ...[
      type.Array(text, { maxItems: 1 }),
      type.Record(type.String(), text, { title: 'Texts' }),
      type.Optional(text),
    ],
    type.Object({ all: type.Optional(text) }, { title: 'Nothing required' }),
    type.Object(
      { some: type.Optional(type.Unsafe({ type: 'null' })), text },
      { additionalProperties: false },
    ),
    type.Object({ inner: type.Object({}), spread: { ...type.Optional(text) } }),
  ]
  return all.map((schema) => JSON.stringify(schema))
}

test("the schemas are TypeBox's, to the order of their keys", () => {
  assert.deepEqual(built(Type), built(TypeBox))
})
