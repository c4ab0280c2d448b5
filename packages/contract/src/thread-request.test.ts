import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { DEFAULT_LIMITS, LIMIT_DETAILS, ThreadRequestSchema } from './thread-request.ts'
import { compileSchema } from './validator.ts'

const schema = ThreadRequestSchema(DEFAULT_LIMITS)

describe('the schema of a request', () => {
  it('allows null for every optional field, and for no other', () => {
    const isValid = compileSchema(schema)
    const required: readonly string[] = schema.required
    const [source, quote] = [schema.properties, schema.properties.quotes.items.properties]
    for (const field of Object.keys(source)) {
      assert.equal(isValid({ ...minimal, [field]: null }), !required.includes(field), field)
    }
    for (const field of Object.keys(quote)) {
      assert.equal(
        isValid({ ...minimal, quotes: [{ text: 'a', [field]: null }] }),
        field !== 'text',
        field,
      )
    }
  })

  it('is plain JSON that describes every field', () => {
    const json = JSON.parse(JSON.stringify(schema))
    for (const field of [
      ...Object.values(json.properties),
      ...Object.values(json.properties.quotes.items.properties),
    ]) {
      assert.ok(
        Object.entries(Object(field)).some(([key, text]) => key === 'description' && text !== ''),
      )
    }
  })

  it('has a detail for every limit', () => {
    assert.deepEqual(Object.keys(LIMIT_DETAILS), Object.keys(DEFAULT_LIMITS))
  })
})

const minimal = { service: 'x', externalId: '1', title: 't', quotes: [] }
