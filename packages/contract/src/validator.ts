// Compiles the schemas of this package.
import { Ajv, type ValidateFunction } from 'ajv'
import type { TSchema } from 'typebox'
import { addFault, type FaultList, faultsOf, LONGEST_NAMED_FIELD, type Parsed } from './faults.ts'
import { FORMATS, hasAtMost } from './field-values.ts'

/**
 * Makes a parser of values by a schema of this package. The schema is compiled when it is first needed: most processes
 * need few of them, and each start would pay for all.
 *
 * @param coerceTypes reads numbers from texts. The value is changed in place.
 */
export function createParser<Value>(schema: TSchema, coerceTypes = false): (value: unknown) => Parsed<Value> {
  let isValid: ValidateFunction<Value> | undefined
  return (value) => {
    isValid ??= compileSchema<Value>(schema, coerceTypes)
    return isValid(value) ? { ok: true, value } : { ok: false, ...faultsOf(isValid.errors) }
  }
}

/** The parameters of a query, as `URLSearchParams` lists them. */
export type Params = Iterable<readonly [name: string, value: string]>

/** Makes a parser of queries by their schema. It refuses a repeated parameter, which could mean either value. */
export function createQueryParser<Query>(schema: TSchema): (params: Params) => Parsed<Query> {
  const parse = createParser<Query>(schema, true)
  return (params) => {
    const values = new Map<string, string>()
    const faults: FaultList = { errors: [], total: 0 }
    for (const [name, value] of params) {
      const shown = name.slice(0, LONGEST_NAMED_FIELD)
      const message = `${shown} may be given only once.`
      if (values.has(name)) addFault(faults, () => ({ pointer: `/${shown}`, code: 'duplicate', message }))
      values.set(name, value)
    }
    return faults.total === 0 ? parse(Object.fromEntries(values)) : { ok: false, ...faults }
  }
}

/** Compiles the check by a schema. It finds every fault of a value, with what `explainFault` needs to know of it. */
export function compileSchema<Value>(schema: TSchema, coerceTypes = false): ValidateFunction<Value> {
  const validator = new Ajv({
    // The schemas are our own, and the tests of the API's description check them.
    validateSchema: false,
    allErrors: true,
    verbose: true,
    allowUnionTypes: true,
    coerceTypes,
    formats: FORMATS,
  })
  // Ajv's own maxLength means the same but counts every string to its end, which is half of the time of a check.
  validator.removeKeyword('maxLength')
  validator.addKeyword({ keyword: 'maxLength', type: 'string', schemaType: 'number', compile: hasAtMost })
  return validator.compile<Value>(schema)
}
