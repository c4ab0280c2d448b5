// Compiles the schemas of this package.
import { Ajv, type ValidateFunction } from 'ajv'
import type { Static, TObject, TSchema } from 'typebox'
import { hasAtMost } from './field-values.ts'
import {
  addError,
  errorsOf,
  FORMATS,
  LONGEST_NAMED_FIELD,
  type Parsed,
  type ValidationErrors,
} from './validation-errors.ts'

/**
 * Makes a parser of values from a schema of this package. The schema is compiled when the parser is
 * first used, because most processes use only a few.
 */
export function createParser<Schema extends TSchema>(
  schema: Schema,
): (value: unknown) => Parsed<Static<Schema>> {
  let isValid: ValidateFunction<Static<Schema>> | undefined
  return (value) => {
    isValid ??= compileSchema<Static<Schema>>(schema)
    return isValid(value) ? { ok: true, value } : { ok: false, ...errorsOf(isValid.errors) }
  }
}

/** The parameters of a query, in the form in which `URLSearchParams` lists them. */
export type Params = Iterable<readonly [name: string, value: string]>

/**
 * Makes a parser of queries from their schema. It refuses a repeated parameter, because either
 * value could be meant. It refuses a whole number that is not written in decimal digits, such as
 * `0x10` or `1e2`.
 */
export function createQueryParser<Schema extends TObject>(
  schema: Schema,
): (params: Params) => Parsed<Static<Schema>> {
  const parse = createParser(schema)
  const read = (name: string, value: string) =>
    Object(schema.properties[name]).type === 'integer' && /^-?\d{1,15}$/.test(value)
      ? Number(value)
      : value
  return (params) => {
    const values = new Map<string, string | number>()
    const list: ValidationErrors = { errors: [], total: 0 }
    for (const [name, value] of params) {
      const shown = name.slice(0, LONGEST_NAMED_FIELD)
      const message = `${shown} may be given only once.`
      if (values.has(name))
        addError(list, () => ({ pointer: `/${shown}`, code: 'duplicate', message }))
      values.set(name, read(name, value))
    }
    return list.total === 0 ? parse(Object.fromEntries(values)) : { ok: false, ...list }
  }
}

/**
 * Compiles a check from a schema. The check finds all errors of a value, with the details that
 * `explainError` needs.
 */
export function compileSchema<Value>(schema: TSchema): ValidateFunction<Value> {
  const validator = new Ajv({
    // The schemas are our own, and are checked by the tests of the API's description.
    validateSchema: false,
    allErrors: true,
    verbose: true,
    allowUnionTypes: true,
    formats: FORMATS,
  })
  // Ajv's own maxLength means the same, but counts each string to its end, which takes half of the
  // time of a check.
  validator.removeKeyword('maxLength')
  validator.addKeyword({
    keyword: 'maxLength',
    type: 'string',
    schemaType: 'number',
    compile: hasAtMost,
  })
  return validator.compile<Value>(schema)
}
