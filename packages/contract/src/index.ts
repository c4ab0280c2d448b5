// The front door of the contract: what callers of the API rely on.
export {
  type AcceptedAnswer,
  AcceptedAnswerSchema,
  acceptedAnswer,
  ImportAnswerSchema,
  ImportLineSchema,
  type ImportProgressAnswer,
  ImportProgressSchema,
  type ImportSummary,
  type JobAnswer,
  JobAnswerSchema,
  type JobState,
  type LimitsAnswer,
  LimitsSchema,
  LivenessSchema,
  MESSAGE,
  NDJSON,
  type Outcome,
  PROBLEMS_KEPT,
  type QuoteAnswer,
  QuoteAnswerSchema,
  ReadinessSchema,
  type SourceAnswer,
  SourceAnswerSchema,
  STORED_STATUS,
  type StoredItem,
  type ThreadAnswer,
  ThreadAnswerSchema,
} from './answers.ts'
export {
  type FailedJob,
  type FailedJobFilter,
  FailedJobFilterSchema,
  type FailedJobGroups,
  FailedJobGroupsSchema,
  type FailedJobPage,
  FailedJobPageSchema,
  type FailedJobPlace,
  type FailedJobQuery,
  FailedJobQuerySchema,
  FailedJobSchema,
  type FailedThread,
  GROUPS_LISTED,
  JOBS_PER_PAGE,
  type LaneOperationKind,
  OPERATIONS_LISTED,
  type Operation,
  type OperationKind,
  type OperationList,
  OperationListSchema,
  type OperationRequest,
  OperationRequestSchema,
  OperationSchema,
  parseFailedJobFilter,
  parseFailedJobQuery,
  parseOperationRequest,
  placeText,
  type RecordedTry,
} from './failed-job-schemas.ts'
export { FAULT_CODES, type Fault, type FaultCode, FaultSchema, fieldFault, type Parsed, refuse } from './faults.ts'
export { effectiveScore, parseIsoDate, type Votes } from './field-values.ts'
export {
  type FindLine,
  FindLineSchema,
  type FindQuery,
  FindQuerySchema,
  FOUND_STATES,
  type FoundState,
  HITS_PER_SEARCH,
  type Hit,
  parseFindQuery,
  parseRecentJobsQuery,
  type RecentJobs,
  type RecentJobsQuery,
  RecentJobsQuerySchema,
  RecentJobsSchema,
  type Searched,
  wantedOf,
} from './find-schemas.ts'
export {
  type HistoryPoint,
  type Overview,
  QUEUED_STATES,
  type QueuedJobs,
  type SeenProcess,
  type Status,
  StatusSchema,
} from './overview-schemas.ts'
export { createTextParser, type ParsedArray, type TextParser } from './parse-text.ts'
export { createThreadParser, type ParsedText } from './parse-thread.ts'
export { NO_PREFERENCES, type Preferences, parsePrefer } from './prefer.ts'
export {
  createProblem,
  PROBLEM_MEDIA_TYPE,
  type Problem,
  type ProblemMembers,
  ProblemSchema,
} from './problem.ts'
export { PROBLEMS, type ProblemCode, type ProblemKind, problemType } from './problems.ts'
export { EMPTY_IMPORT, NEWLINES } from './refused-text.ts'
export {
  createSourcesParser,
  type ListedSource,
  type SourceList,
  type SourceListQuery,
  SourceListSchema,
  SourcesQuerySchema,
} from './source-list.ts'
export {
  createLookupParser,
  LookupAnswerSchema,
  LookupRequestSchema,
} from './source-lookup.ts'
export {
  type PageQuery,
  parsePageQuery,
  type QuotePlace,
  quotePlaceText,
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
export { meantField, type Warning } from './warnings.ts'
