export { acceptedAnswer } from './accepted-answer.ts'
export {
  type AcceptedAnswer,
  AcceptedAnswerSchema,
  type JobAnswer,
  JobAnswerSchema,
  type JobState,
  MESSAGE,
  type Outcome,
  type QuoteAnswer,
  QuoteAnswerSchema,
  type SourceAnswer,
  SourceAnswerSchema,
  STORED_STATUS,
  type ThreadAnswer,
  ThreadAnswerSchema,
} from './answers.ts'
export { effectiveScore, type Votes } from './effective-score.ts'
export { FAULT_CODES, type Fault, type FaultCode, FaultSchema } from './fault.ts'
export { parseIsoDate } from './iso-date.ts'
export { DEFAULT_LIMITS, LIMIT_DETAILS, type LimitDetail, type LimitName, type Limits } from './limits.ts'
export { type Preferences, parsePrefer } from './prefer.ts'
export {
  createProblem,
  PROBLEM_MEDIA_TYPE,
  PROBLEMS,
  type Problem,
  type ProblemCode,
  type ProblemMembers,
  ProblemSchema,
} from './problem.ts'
export { SERVICES, type Service } from './services.ts'
export type { QuoteFields, SourceFields, Thread } from './thread.ts'
export { createThreadParser, type ParsedThread, type ParseThread } from './thread-parser.ts'
export { type ThreadRequest, ThreadRequestSchema } from './thread-request-schema.ts'
