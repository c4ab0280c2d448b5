import { type Static, Type } from 'typebox'
import { FaultSchema } from './fault.ts'

/** Everything that can go wrong with a call, a closed list: the HTTP status and the title of each. */
export const PROBLEMS = {
  api_key_invalid: { status: 403, title: 'API key missing or invalid' },
  route_unknown: { status: 404, title: 'Nothing at this path' },
  batch_unknown: { status: 404, title: 'No such batch' },
  job_unknown: { status: 404, title: 'No such job' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  body_too_large: { status: 413, title: 'Body too large' },
  media_type_unsupported: { status: 415, title: 'Media type not supported' },
  charset_unsupported: { status: 415, title: 'Charset not supported' },
  encoding_unsupported: { status: 415, title: 'Content encoding not supported' },
  body_unreadable: { status: 400, title: 'Body not readable' },
  json_invalid: { status: 400, title: 'Body is not JSON' },
  request_invalid: { status: 400, title: 'Request invalid' },
  internal: { status: 500, title: 'Internal error' },
  job_failed: { status: 500, title: 'Job failed' },
  queue_unavailable: { status: 503, title: 'Queue not available' },
  keys_unavailable: { status: 503, title: 'Keys not available' },
  stopping: { status: 503, title: 'Service is stopping' },
  job_pending: { status: 504, title: 'Job not done yet' },
} as const

export type ProblemCode = keyof typeof PROBLEMS

/** The media type of a problem's body. */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

/** The body of every answer that reports a problem (RFC 9457). */
export const ProblemSchema = Type.Object(
  {
    type: Type.String({
      format: 'uri-reference',
      description: 'Where the problem is documented, relative to the API.',
    }),
    title: Type.String({ description: 'The kind of problem; the same for every problem of one code.' }),
    status: Type.Integer({ description: 'The HTTP status.' }),
    detail: Type.String({ description: 'What happened this time, and what to do about it.' }),
    instance: Type.Optional(Type.String({ format: 'uri-reference', description: 'What was asked for.' })),
    code: Type.Unsafe<ProblemCode>({
      type: 'string',
      enum: Object.keys(PROBLEMS),
      description: 'The kind of problem, for programs.',
    }),
    requestId: Type.String({ description: 'The X-Request-Id of the answer.' }),
    errors: Type.Optional(Type.Array(FaultSchema, { description: 'The faults of the request, at most 50.' })),
    total: Type.Optional(Type.Integer({ description: 'How many faults the request has.' })),
    jobId: Type.Optional(
      Type.String({ format: 'uuid', description: 'The job that the problem is about; see GET /jobs/{id}.' }),
    ),
  },
  { title: 'Problem', description: 'A problem of RFC 9457.' },
)

export type Problem = Static<typeof ProblemSchema>

/** What one occurrence of a problem adds to its kind. */
export type ProblemMembers = Omit<Problem, 'type' | 'title' | 'status' | 'code'>

/** Builds the body that reports a problem of this kind, its members in the order in which people read them. */
export function createProblem(
  code: ProblemCode,
  { detail, instance, requestId, ...extensions }: ProblemMembers,
): Problem {
  const { status, title } = PROBLEMS[code]
  const at = instance === undefined ? {} : { instance: uriReference(instance) }
  return { type: `/docs#problem-${code}`, title, status, detail, ...at, code, requestId, ...extensions }
}

/** A request's path as a URI reference: a caller may have sent characters that no URI has, and a `%` that encodes nothing. */
function uriReference(path: string): string {
  return path.replace(/%(?![0-9a-f]{2})|[^!-~]|["#<>[\\\]^`{|}]/gi, encodeURIComponent)
}
