// Problems (RFC 9457): the closed list of them, and the body that reports one.
import { type Static, Type } from 'typebox'
import { FaultSchema } from './faults.ts'
import { WarningsSchema } from './warnings.ts'

/** All problems that a request can meet, a closed list: the HTTP status and the title of each. */
export const PROBLEMS = {
  api_key_invalid: { status: 403, title: 'API key missing or invalid' },
  importer_only: { status: 403, title: 'For keys of importers only' },
  operator_only: { status: 403, title: 'For keys of operators only' },
  route_unknown: { status: 404, title: 'Nothing at this path' },
  import_unknown: { status: 404, title: 'No such import' },
  source_unknown: { status: 404, title: 'No such source' },
  job_unknown: { status: 404, title: 'No such job' },
  operation_unknown: { status: 404, title: 'No such operation' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  request_timeout: { status: 408, title: 'Request took too long' },
  body_too_large: { status: 413, title: 'Body too large' },
  media_type_unsupported: { status: 415, title: 'Media type not supported' },
  charset_unsupported: { status: 415, title: 'Charset not supported' },
  encoding_unsupported: { status: 415, title: 'Content encoding not supported' },
  expectation_unknown: { status: 417, title: 'Expectation not known' },
  headers_too_large: { status: 431, title: 'Headers too large' },
  body_unreadable: { status: 400, title: 'Body not readable' },
  json_invalid: { status: 400, title: 'Body is not JSON' },
  request_invalid: { status: 400, title: 'Request invalid' },
  idempotency_key_invalid: { status: 400, title: 'Idempotency-Key invalid' },
  idempotency_key_reused: { status: 422, title: 'Idempotency-Key used for another request' },
  rate_limited: {
    status: 429,
    title: 'Quota exceeded',
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  },
  internal: { status: 500, title: 'Internal error' },
  job_failed: { status: 500, title: 'Job failed' },
  operations_full: { status: 503, title: 'Too many operations' },
  queue_unavailable: { status: 503, title: 'Queue not available' },
  queue_full: { status: 503, title: 'Queue is full' },
  tenant_share: { status: 503, title: "Tenant's share of the queue is used up" },
  keys_unavailable: { status: 503, title: 'Keys not available' },
  store_unavailable: { status: 503, title: 'Store not available' },
  overloaded: { status: 503, title: 'Service is overloaded' },
  stopping: { status: 503, title: 'Service is stopping' },
  acceptance_unknown: { status: 504, title: 'Acceptance not confirmed' },
  job_pending: { status: 504, title: 'Job not done yet' },
} as const satisfies Record<string, { status: number; title: string; type?: string }>

export type ProblemCode = keyof typeof PROBLEMS

/** The media type of a problem's body. */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

/** The body of every answer that reports a problem (RFC 9457). */
export const ProblemSchema = Type.Object(
  {
    type: Type.String({
      format: 'uri-reference',
      description: 'about:blank, or the registered type of an exceeded quota. `code` names the kind of problem.',
    }),
    title: Type.String({ description: 'The kind of problem. The same for every problem of one code.' }),
    status: Type.Integer({ description: 'The HTTP status.' }),
    detail: Type.String({ description: 'What happened, and what to do about it.' }),
    instance: Type.Optional(Type.String({ format: 'uri-reference', description: 'The path of the request.' })),
    code: Type.Unsafe<ProblemCode>({
      type: 'string',
      enum: Object.keys(PROBLEMS),
      description: 'The kind of problem, for programs.',
    }),
    requestId: Type.String({ description: 'The X-Request-Id of the answer.' }),
    errors: Type.Optional(
      Type.Array(FaultSchema, { description: 'The faults of the request, at most 50. Every 400 has them.' }),
    ),
    total: Type.Optional(Type.Integer({ description: 'How many faults the request has.' })),
    warnings: Type.Optional(WarningsSchema),
    'violated-policies': Type.Optional(
      Type.Array(Type.String(), { description: 'The exceeded quotas, by their names in RateLimit-Policy.' }),
    ),
    jobId: Type.Optional(Type.String({ format: 'uuid', description: 'The job of the request. See GET /jobs/{id}.' })),
  },
  { title: 'Problem', description: 'A problem (RFC 9457).' },
)

export type Problem = Static<typeof ProblemSchema>

/** The members that differ from one occurrence of a problem to the next. */
export type ProblemMembers = Omit<Problem, 'type' | 'title' | 'status' | 'code'>

/** Builds the body that reports a problem. Its members are in the order in which people read them. */
export function createProblem(
  code: ProblemCode,
  { detail, instance, requestId, ...extensions }: ProblemMembers,
): Problem {
  const { type = 'about:blank', status, title }: { type?: string; status: number; title: string } = PROBLEMS[code]
  const path = instance === undefined ? {} : { instance: uriReference(instance) }
  return { type, title, status, detail, ...path, code, requestId, ...extensions }
}

/** A request's path as a URI reference. A caller may send characters that no URI has, and a `%` that encodes nothing. */
function uriReference(path: string): string {
  return path.replace(/%(?![0-9a-f]{2})|[^!-~]|["#<>[\\\]^`{|}]/gi, encodeURIComponent)
}
