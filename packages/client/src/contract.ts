// The types of requests and answers. The packed package has them written out, so that it needs no other package.
export type {
  AcceptedAnswer,
  Fault,
  JobAnswer,
  LimitName,
  Outcome,
  Problem,
  ProblemCode,
  QuoteAnswer,
  QuoteRequest,
  Service,
  SourceAnswer,
  ThreadAnswer,
  ThreadRequest,
} from '@sluice/contract'
