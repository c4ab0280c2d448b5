import type { ErrorObject } from 'ajv'
import type { Fault, FaultCode } from './fault.ts'
import { pointerTo } from './json-pointer.ts'
import { ISO_DATE } from './thread-request-schema.ts'

/** Says what one of the validator's errors (made with `verbose`) means to the caller: the field, and the bound that it misses. */
export function explainFault(error: ErrorObject): Fault {
  const pointer =
    error.keyword === 'required' ? pointerTo(error.instancePath, error.params.missingProperty) : error.instancePath
  const code = codeOf(error)
  return { pointer, code, message: `${nameOf(pointer)} ${complaint(code, error)}` }
}

/** Whether the error only repeats that the value has the wrong type: such a value is none of those allowed either. */
export function repeatsType({ keyword, data }: ErrorObject): boolean {
  return keyword === 'enum' && typeof data !== 'string'
}

/** The fault of a request that has more quotes than `limit`. */
export function tooManyQuotes(given: number, limit: number): Fault {
  const message = `quotes must have at most ${limit} elements, and has ${given}.`
  return { pointer: '/quotes', code: 'too_many', message }
}

function codeOf({ keyword, params, data }: ErrorObject): FaultCode {
  switch (keyword) {
    case 'required':
    case 'pattern':
      return 'required'
    case 'maxLength':
      return 'too_long'
    case 'enum':
      return 'enum'
    case 'format':
      return params.format === ISO_DATE ? 'date' : 'not_well_formed'
    default:
      return typeof data === 'number' && !Number.isFinite(data) ? 'not_finite' : 'type'
  }
}

function complaint(code: FaultCode, { params, schema }: ErrorObject): string {
  switch (code) {
    case 'required':
      return 'is required, and must not be null or blank.'
    case 'too_long':
      return `must have at most ${schema} characters (Unicode code points).`
    case 'enum':
      return `must be one of ${params.allowedValues.join(', ')}.`
    case 'date':
      return 'must be a date or date-time of ISO 8601 that exists, such as 2024-05-01 or 2024-05-01T09:30:00.000Z.'
    case 'not_well_formed':
      return 'must be well-formed Unicode, and has a lone surrogate.'
    case 'not_finite':
      return 'must be a number within the range of a double.'
    default:
      return `must be of type ${[schema].flat()[0]}.`
  }
}

function nameOf(pointer: string): string {
  const name = pointer.slice(pointer.lastIndexOf('/') + 1)
  return /^\d/.test(name) ? `quotes[${name}]` : name
}
