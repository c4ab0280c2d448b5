// Compiles the schemas of this package.
import { Ajv, type ValidateFunction } from 'ajv'
import type { TSchema } from 'typebox'
import { type Parsed, validationFaults } from './faults.ts'
import { hasAtMost, isIsoDate, isWellFormed } from './field-values.ts'
import { ISO_DATE, WELL_FORMED } from './thread-request.ts'

/**
 * Makes a parser of values by a schema of this package. The schema is compiled when it is first needed: most processes
 * need few of them, and each start would pay for all.
 *
 * @param ofQuery reads numbers from texts, as a query has them. The value is changed in place.
 */
export function createParser<Value>(schema: TSchema, ofQuery = false): (value: unknown) => Parsed<Value> {
  let isValid: ValidateFunction<Value> | undefined
  return (value) => {
    isValid ??= compileSchema<Value>(schema, ofQuery)
    return isValid(value) ? { ok: true, value } : validationFaults(isValid.errors)
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
    formats: { [WELL_FORMED]: isWellFormed, [ISO_DATE]: isIsoDate },
  })
  // Ajv's own maxLength means the same but counts every string to its end, which is half of the time of a check.
  validator.removeKeyword('maxLength')
  validator.addKeyword({ keyword: 'maxLength', type: 'string', schemaType: 'number', compile: hasAtMost })
  return validator.compile<Value>(schema)
}
