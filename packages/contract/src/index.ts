// The exports of the contract: the schemas, types, parsers and texts of the API's requests and answers.
export type { Static } from 'typebox'
export * from './answers.ts'
export * from './failed-job-schemas.ts'
export { FAULT_CODES, type Fault, type FaultCode, FaultSchema, type Parsed, refuseField } from './faults.ts'
export {
  contentOf,
  DURATION_FORM,
  durationSeconds,
  effectiveScore,
  isRecord,
  parseIsoDate,
  textLength,
  UNIT_SECONDS,
  type Votes,
} from './field-values.ts'
export * from './find-schemas.ts'
export { meantField, type Warning } from './leniency.ts'
export * from './overview-schemas.ts'
export * from './parse-thread.ts'
export * from './prefer.ts'
export * from './problem.ts'
export * from './problems.ts'
export { EMPTY_IMPORT, NEWLINES } from './refused-text.ts'
export * from './source-reads.ts'
export * from './thread-request.ts'
export { createParser, type Params } from './validator.ts'
