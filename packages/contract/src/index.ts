// The exports of the contract: the schemas, types, parsers and texts of the API's requests and answers.
export type { Static } from 'typebox'
export * from './answers.ts'
export * from './failed-job-schemas.ts'
export { FAULT_CODES, type Fault, type FaultCode, FaultSchema, type Parsed, refuseField } from './faults.ts'
export { contentOf, effectiveScore, isRecord, parseIsoDate, type Votes } from './field-values.ts'
export * from './find-schemas.ts'
export * from './overview-schemas.ts'
export {
  createTextParser,
  createThreadParser,
  type ParsedArray,
  type ParsedText,
  type TextParser,
} from './parse-thread.ts'
export * from './prefer.ts'
export * from './problem.ts'
export * from './problems.ts'
export { EMPTY_IMPORT, NEWLINES } from './refused-text.ts'
export * from './source-list.ts'
export {
  type PageQuery,
  parsePageQuery,
  type QuoteCursor,
  quoteCursorText,
  type SourcePage,
  SourcePageQuerySchema,
  SourcePageSchema,
} from './source-page.ts'
export {
  DEFAULT_LIMITS,
  ISO_DATE,
  LIMIT_DETAILS,
  type LimitName,
  type Limits,
  type QuoteFields,
  type QuoteRequest,
  SERVICES,
  type Service,
  type SourceFields,
  type Thread,
  type ThreadRequest,
  ThreadRequestSchema,
} from './thread-request.ts'
export { createParser, type Params } from './validator.ts'
export { meantField, type Warning } from './warnings.ts'
