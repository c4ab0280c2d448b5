// The body that reports a problem (RFC 9457).
import type { Static } from 'typebox'
import { named, optional, Type, text, uuid } from './json-schema.ts'
import { WarningsSchema } from './leniency.ts'
import { PROBLEMS, type ProblemCode, problemType } from './problems.ts'
import { ValidationErrorSchema } from './validation-errors.ts'

export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

export const ProblemSchema = named(
  'Problem',
  {
    type: Type.String({
      format: 'uri-reference',
      description:
        'The page that says what the problem means and what to do. `code` names the kind of problem too.',
    }),
    title: text('The kind of problem. The same for every problem of one code.'),
    status: Type.Integer({ description: 'The HTTP status.' }),
    detail: text('What happened, and what to do about it.'),
    instance: optional(
      Type.String({ format: 'uri-reference', description: 'The path of the request.' }),
    ),
    code: Type.Unsafe<ProblemCode>({
      type: 'string',
      enum: Object.keys(PROBLEMS),
      description: 'The kind of problem, for programs.',
    }),
    requestId: text('The X-Request-Id of the answer.'),
    errors: optional(
      Type.Array(ValidationErrorSchema, {
        description: 'At most 50 of the validation errors. Every 400 has them.',
      }),
    ),
    total: optional(Type.Integer({ description: 'How many validation errors the request has.' })),
    warnings: optional(WarningsSchema),
    'violated-policies': optional(
      Type.Array(Type.String(), { description: 'Exceeded quotas, as in RateLimit-Policy.' }),
    ),
    jobId: optional(uuid('The job of the request. See GET /jobs/{id}.')),
  },
  { description: 'A problem (RFC 9457).' },
)

export type Problem = Static<typeof ProblemSchema>

/** The members that differ between two occurrences of a problem. */
export type ProblemMembers = Omit<Problem, 'type' | 'title' | 'status' | 'code' | 'detail'> & {
  detail?: string
}

/**
 * Builds the body that reports a problem. By default, `detail` is the meaning and the remedy of the
 * problem's kind. The members are in the order in which people read them.
 */
export function createProblem(code: ProblemCode, members: ProblemMembers): Problem {
  const { status, title, meaning, remedy } = PROBLEMS[code]
  const {
    detail = `${meaning} ${remedy}`.replaceAll('`', ''),
    instance,
    requestId,
    ...extensions
  } = members
  const path = instance === undefined ? {} : { instance: uriReference(instance) }
  return { type: problemType(code), title, status, detail, ...path, code, requestId, ...extensions }
}

/**
 * Converts a path to a URI reference: a caller may send characters that no URI allows, or a `%`
 * that encodes nothing.
 */
function uriReference(path: string): string {
  return path.replace(/%(?![0-9a-f]{2})|[^!-~]|["#<>[\\\]^`{|}]/gi, encodeURIComponent)
}
