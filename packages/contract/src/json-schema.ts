// Builds the JSON Schemas of this package, with the types of TypeBox. TypeBox itself is not loaded,
// because its 370 modules would take a quarter of each process's start.
import type { TProperties, TSchema, Type as TypeBox } from 'typebox'

type Options = Readonly<Record<string, unknown>>
type Optional = TSchema & { readonly '~optional'?: true }

const ofType = (type: string) => (options?: Options) => ({ type, ...options })

const builders = {
  String: ofType('string'),
  Number: ofType('number'),
  Integer: ofType('integer'),
  Boolean: ofType('boolean'),
  Unknown: (options?: Options) => ({ ...options }),
  Unsafe: (schema: TSchema) => schema,
  Literal: (value: unknown, options?: Options) => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Enum: (values: readonly unknown[], options?: Options) => ({ enum: [...values], ...options }),
  Union: (anyOf: readonly TSchema[], options?: Options) => ({ anyOf, ...options }),
  Array: (items: TSchema, options?: Options) => ({ type: 'array', items, ...options }),
  /** Ignores the schema of the keys, so any key is allowed. */
  Record: (_keys: TSchema, value: TSchema, options?: Options) => ({
    type: 'object',
    patternProperties: { '^.*$': value },
    ...options,
  }),
  /** The mark is not enumerable, so it does not appear in the schema. */
  Optional: (schema: TSchema) => Object.defineProperty({ ...schema }, '~optional', { value: true }),
  Object: (properties: Readonly<Record<string, Optional>>, options?: Options) => {
    const required = Object.keys(properties).filter(
      (name) => properties[name]?.['~optional'] !== true,
    )
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
  },
}

/** Our builders with the types of TypeBox. A test compares their schemas with TypeBox's. */
export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>

/** Makes an object that has a name in the description of the API. */
export const named = <P extends TProperties>(title: string, properties: P, options?: Options) =>
  Type.Object(properties, { title, ...options })
/**
 * Makes an object whose unknown fields are errors, because a filter with a mistyped field would
 * match too much.
 */
export const closed = <P extends TProperties>(title: string, properties: P) =>
  named(title, properties, { additionalProperties: false })
/** Makes a schema for one of these texts. */
export const oneOf = <const Values extends string[]>(
  values: readonly [...Values],
  description?: string,
) => Type.Enum(values, { type: 'string', ...(description !== undefined && { description }) })
export const optional = Type.Optional
/** Makes a schema for any text. */
export const text = (description: string) => Type.String({ description })
/** Makes a schema for a date and time of ISO 8601. */
export const moment = (description: string) => Type.String({ format: 'date-time', description })
/** Makes a schema for an id that is random. */
export const uuid = (description: string) => Type.String({ format: 'uuid', description })
/** Makes a schema for a whole number of at least 0. */
export const count = (description: string) => Type.Integer({ minimum: 0, description })

/**
 * The parameters of a page: its size, and the cursor after which it begins.
 * @param most the largest size.
 */
export const pageParameters = ({
  most,
  byDefault,
  cursor,
}: {
  most: number
  byDefault: number
  cursor: string
}) => ({
  limit: optional(
    Type.Integer({
      minimum: 1,
      maximum: most,
      description: `The most of this page; ${byDefault} if absent.`,
    }),
  ),
  after: optional(
    Type.String({
      pattern: cursor,
      description: '`next` of the page before, of the same list or source.',
    }),
  ),
})
/** The cursor in an answer. */
export const next = optional(text('Give it as `after` for the next page. Absent on the last one.'))
