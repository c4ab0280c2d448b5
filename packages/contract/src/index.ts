// Entry point of the contract: the schemas, types, parsers and texts of the API's requests and
// answers.
export type { Static } from 'typebox'
export * from './answers.ts'
export {
  COUNT_NAMES,
  COUNTS,
  type CountsBy,
  countOf,
  perSecondOf,
  spanCounts,
} from './counts.ts'
export * from './deletion-records.ts'
export * from './deletions.ts'
export * from './erasures.ts'
export * from './failed-job-schemas.ts'
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
export * from './suppressions.ts'
export * from './thread-request.ts'
export {
  FORMATS,
  type Parsed,
  refuseField,
  VALIDATION_ERROR_CODES,
  type ValidationError,
  type ValidationErrorCode,
  ValidationErrorSchema,
} from './validation-errors.ts'
export { createParser, type Params } from './validator.ts'
