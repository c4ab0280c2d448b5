// What is wrong with a request: the closed list of codes, the schema of the errors in answers, and
// their texts.
import type { ErrorObject } from 'ajv'
import type { Static } from 'typebox'
import { parseIsoDate } from './field-values.ts'
import { named, oneOf, text } from './json-schema.ts'
import { namesOf, nearestName } from './near-names.ts'
import { ISO_DATE, NOT_BLANK, WELL_FORMED } from './thread-request.ts'

/** The codes of validation errors. The list is closed. */
export const VALIDATION_ERROR_CODES = [
  'required', // A required value is missing, null or blank.
  'type', // A value of another JSON type (nothing is coerced), or one that the field or parameter can't have.
  'too_long', // Too many characters. `too_many`: too many elements or JSON values.
  'too_many',
  'enum', // Not one of the values that the field can have.
  'date', // Not a date of ISO 8601, or a date that does not exist.
  'not_well_formed', // A string with a lone surrogate.
  'not_finite', // A number outside the range of a double.
  'unknown_field', // In a thread, this and the next two only with `Prefer: handling=strict`. In other input, always.
  'duplicate',
  'unmatched_reply',
  'nesting_too_deep',
  'header_invalid', // A header is malformed, or was sent to a path that does not accept it.
  'not_http', // The HTTP message is malformed.
  'not_decodable', // The body does not decode: its content coding or its UTF-8 is invalid.
  'not_json', // The text is not valid JSON.
] as const

export const ValidationErrorSchema = named('ValidationError', {
  pointer: text(
    'JSON Pointer (RFC 6901) into the request body; "" is all of it. For a query: / and the parameter.',
  ),
  code: oneOf(VALIDATION_ERROR_CODES, 'What is wrong, for programs.'),
  message: text('What is wrong, for people.'),
})

export type ValidationError = Static<typeof ValidationErrorSchema>
export type ValidationErrorCode = ValidationError['code']

/** An answer lists at most this number of errors, and counts the others. */
const LISTED_ERRORS = 50

export type ValidationErrors = { errors: ValidationError[]; total: number }

/**
 * Counts an error. Creates it only if the list has room, because a hostile body can have millions.
 */
export function addError(list: ValidationErrors, createError: () => ValidationError): void {
  list.total += 1
  if (list.errors.length < LISTED_ERRORS) list.errors.push(createError())
}

/** Returns the JSON Pointer (RFC 6901) to the field or element `name` of the value at `parent`. */
export function pointerTo(parent: string, name: string | number): string {
  return `${parent}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/**
 * Answers cut or omit a field's name if it is longer than this, because a name can be as long as
 * the body.
 */
export const LONGEST_NAMED_FIELD = 200

/**
 * Converts an error of the validator (created with `verbose`) to one of ours. The message says the
 * field and the rule.
 */
function explainError(error: ErrorObject): ValidationError {
  const { missingProperty, additionalProperty } = error.params
  const field: string | undefined =
    missingProperty ?? additionalProperty?.slice(0, LONGEST_NAMED_FIELD)
  const pointer = field === undefined ? error.instancePath : pointerTo(error.instancePath, field)
  const [code, text] = explain(error)
  return { pointer, code, message: `${nameOf(pointer)} ${text}` }
}

export function errorsOf(errors: readonly ErrorObject[] | null | undefined): ValidationErrors {
  const list: ValidationErrors = { errors: [], total: 0 }
  for (const error of errors ?? []) {
    // A value of the wrong type also violates the enum, but one error is enough.
    const repeatsType = error.keyword === 'enum' && typeof error.data !== 'string'
    if (!repeatsType) addError(list, () => explainError(error))
  }
  return list
}

export type Invalid = { ok: false } & ValidationErrors

/** A request in the required form, or its errors. */
export type Parsed<T> = { ok: true; value: T } | Invalid

/** Refuses a request for one error that concerns its whole body. */
export function refuseText(code: ValidationErrorCode, message: string): Invalid {
  return { ok: false, errors: [{ pointer: '', code, message }], total: 1 }
}

/** Refuses a request because the value of a field or parameter can't be used. */
export function refuseField(
  name: string,
  message: string,
  code: ValidationErrorCode = 'type',
): Invalid {
  return {
    ok: false,
    errors: [{ pointer: `/${name}`, code, message: `${name} ${message}` }],
    total: 1,
  }
}

/** The code of an error, and its message without the field's name. */
type Explained = readonly [ValidationErrorCode, string]

/** The string formats that schemas use: the check, and the error of a text that fails the check. */
export const FORMATS: Readonly<
  Record<string, { validate: (text: string) => boolean; error: Explained }>
> = {
  [WELL_FORMED]: {
    validate: (text) => text.isWellFormed(),
    error: ['not_well_formed', 'must be well-formed Unicode, and has a lone surrogate.'],
  },
  [ISO_DATE]: {
    validate: (text) => parseIsoDate(text) !== undefined,
    error: [
      'date',
      'must be a date or date-time of ISO 8601 that exists, such as 2024-05-01 or 2024-05-01T09:30:00.000Z.',
    ],
  },
  uuid: {
    validate: (text) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text),
    error: ['type', 'must be a UUID.'],
  },
}

function explain({
  keyword,
  params,
  schema,
  parentSchema,
  data,
  instancePath,
}: ErrorObject): Explained {
  switch (keyword) {
    case 'pattern':
      if (schema === NOT_BLANK) return BLANK
      return ['type', instancePath === '/after' ? NOT_NEXT : `must match the pattern ${schema}.`]
    case 'required':
      return BLANK
    case 'maxLength':
      return ['too_long', `must have at most ${schema} characters (Unicode code points).`]
    case 'maxItems':
      return ['too_many', `must have at most ${schema} elements.`]
    case 'additionalProperties':
      return ['unknown_field', 'is not a known field.']
    case 'enum':
      return [
        'enum',
        `must be one of ${params.allowedValues.join(', ')}.${closestOf(data, params.allowedValues)}`,
      ]
    case 'format':
      return FORMATS[params.format]?.error ?? ['type', `must have the format ${params.format}.`]
  }
  if (typeof data === 'number' && !Number.isFinite(data))
    return ['not_finite', 'must be a number within the range of a double.']
  return parentSchema?.maximum === undefined
    ? ['type', `must be of type ${[schema].flat()[0]}.`]
    : ['type', `must be a whole number from ${parentSchema.minimum} to ${parentSchema.maximum}.`]
}

const BLANK: Explained = ['required', 'is required, and must not be null or blank.']
const NOT_NEXT = 'must be `next` of an earlier page.'

/** Aliases for values of `service`, in lower case and without separators. */
const SERVICE_ALIASES = {
  ...namesOf('email', ['gmail', 'mail', 'mbox', 'outlook']),
  ...namesOf('play_store', ['googleplay', 'android']),
  ...namesOf('app_store', ['ios', 'itunes']),
  ...namesOf('spreadsheet', ['googlesheets', 'sheets', 'csv', 'excel']),
  ...namesOf('youtube', ['yt']),
  ...namesOf('custom', ['github', 'gitlab', 'jira', 'teams', 'other']),
}

/**
 * Suggests an allowed value. Does not repeat the refused value, which can be as long as the body.
 */
function closestOf(value: unknown, allowed: readonly string[]): string {
  const nearest =
    typeof value === 'string' ? nearestName(value, allowed, SERVICE_ALIASES) : undefined
  if (nearest !== undefined && allowed.includes(nearest)) return ` Did you mean ${nearest}?`
  return allowed.includes('custom') ? ' Send custom for another kind of source.' : ''
}

function nameOf(pointer: string): string {
  if (pointer === '') return 'The body'
  const name = pointer.slice(pointer.lastIndexOf('/') + 1)
  return /^\d/.test(name) ? `quotes[${name}]` : name
}
