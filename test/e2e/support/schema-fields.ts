import { DEFAULT_LIMITS, isRecord, ThreadRequestSchema, WELL_FORMED } from '@sluice/contract'

export interface SchemaField {
  name: string
  isText: boolean
  isNumber: boolean
  isRequired: boolean
  /** The most characters of a text, unless its form bounds it. */
  most?: number
}

const thread = ThreadRequestSchema(DEFAULT_LIMITS)

/**
 * The fields of a source without its quotes, as the schema has them: a new field is tested without
 * a line of its own.
 */
export const sourceFields = fieldsOf(thread).filter(({ name }) => name !== 'quotes')
export const quoteFields = fieldsOf(thread.properties.quotes.items)

function fieldsOf({
  properties,
  required = [],
}: {
  properties: object
  required?: readonly string[]
}): SchemaField[] {
  return Object.entries(properties).map(([name, schema]) => {
    const { type, maxLength, format } = isRecord(schema) ? schema : {}
    const types = [type].flat()
    return {
      name,
      isText: types.includes('string'),
      isNumber: types.includes('number'),
      isRequired: required.includes(name),
      ...(typeof maxLength === 'number' && format === WELL_FORMED && { most: maxLength }),
    }
  })
}
