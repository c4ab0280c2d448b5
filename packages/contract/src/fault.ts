import { type Static, Type } from 'typebox'

/**
 * What can be wrong with a field, a closed list:
 * - `required`: not sent, null or blank, where a value must be;
 * - `type`: a value of another JSON type; nothing is coerced;
 * - `too_long`, `too_many`: past one of the limits;
 * - `enum`: none of the values that the field can have;
 * - `date`: no date of ISO 8601, or one that does not exist;
 * - `not_well_formed`: a string with a lone surrogate;
 * - `not_finite`: a number beyond the range of a double;
 * - `unknown_field`, `duplicate`, `unmatched_reply`: with `Prefer: handling=strict` alone.
 */
export const FAULT_CODES = [
  'required',
  'type',
  'too_long',
  'too_many',
  'enum',
  'date',
  'not_well_formed',
  'not_finite',
  'unknown_field',
  'duplicate',
  'unmatched_reply',
] as const

export const FaultSchema = Type.Object({
  pointer: Type.String({
    description: 'JSON Pointer (RFC 6901) to the fault in the request body; "" is the whole body.',
  }),
  code: Type.Enum(FAULT_CODES, { type: 'string', description: 'What is wrong, for programs.' }),
  message: Type.String({ description: 'What is wrong, for people.' }),
})

export type Fault = Static<typeof FaultSchema>
export type FaultCode = Fault['code']
