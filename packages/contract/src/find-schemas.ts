// The look-ups of operators over the whole service: the schemas of their queries and answers.
import type { Static } from 'typebox'
import { outcomeCounts } from './answers.ts'
import type { FailedJobPage } from './failed-job-schemas.ts'
import { count, moment, Type, text } from './json-schema.ts'
import { NOT_BLANK, SERVICES, WELL_FORMED } from './thread-request.ts'
import { createQueryParser } from './validator.ts'

/** The most hits of an answer. */
export const HITS_SHOWN = 200

const optional = Type.Optional
const param = (maxLength: number, description: string) =>
  optional(Type.String({ maxLength, format: WELL_FORMED, description }))

/** The query of `GET /admin/find`. */
export const FindQuerySchema = Type.Object(
  {
    q: Type.String({
      maxLength: 600,
      format: WELL_FORMED,
      pattern: NOT_BLANK,
      description:
        'The externalId of a source, or the id of a job, an import, a source or a stored quote; of completed jobs also of their request.',
    }),
    tenant: param(200, 'The tenant.'),
    service: optional(Type.Enum(SERVICES, { type: 'string', description: 'The service of the source.' })),
    reason: param(1_000, 'A part of the reason of a failure, in capitals or not: only failed jobs.'),
  },
  { title: 'FindQuery', additionalProperties: false },
)

/** A job, an import, or a stored source or quote. */
const HitSchema = Type.Object(
  {
    kind: Type.Enum(['job', 'source', 'quote', 'import'], { type: 'string', description: 'What was found.' }),
    id: text('Its id.'),
    tenant: Type.String(),
    state: optional(
      Type.Enum(['waiting', 'active', 'failed', 'completed', 'stored'], {
        type: 'string',
        description: 'Its state. An import has none.',
      }),
    ),
    name: optional(text('service/externalId of the source; of a job with several threads, the first and the last.')),
    quote: optional(text('The externalId of the quote that was found.')),
    sourceId: optional(text('The id of the source of a stored quote.')),
    threads: optional(count('The threads of the job, or of the import.')),
    lane: optional(text('interactive or bulk.')),
    requestId: optional(text('The request of the job.')),
    traceId: optional(text('The trace of the request, if it was traced.')),
    importId: optional(text('The import of the job.')),
    acceptedAt: optional(moment('When the job, or the first request for the source, was accepted.')),
    endedAt: optional(moment('When the job was stored, or failed for good.')),
    attempts: optional(count('Tries of the job so far.')),
    reason: optional(text('The error of the last try, cut.')),
    outcomes: optional(Type.Object(outcomeCounts)),
    worker: optional(text('The worker that stored the job.')),
    insertedBy: optional(text('The job that inserted the document.')),
    changedBy: optional(text('The job that changed it last.')),
  },
  { title: 'Hit' },
)

/** The answer of `GET /admin/find`. */
export const FoundSchema = Type.Object(
  {
    hits: Type.Array(HitSchema, { description: 'In the order in which a job moves, and at last what is stored.' }),
    more: Type.Boolean({ description: `There are more than ${HITS_SHOWN} hits.` }),
    notes: Type.Array(Type.String(), { description: 'What was not looked up, and why.' }),
  },
  { title: 'Found' },
)

/** The query of `GET /admin/recent`. */
export const RecentJobsQuerySchema = Type.Object(
  { after: optional(Type.String({ pattern: '^\\d{1,15}-\\d{1,15}$', description: '`next` of the answer before.' })) },
  { title: 'RecentJobsQuery', additionalProperties: false },
)

/** The answer of `GET /admin/recent`. */
export const RecentJobsSchema = Type.Object(
  {
    jobs: Type.Array(HitSchema, { description: 'Completed jobs, oldest first.' }),
    next: text('Give it as `after` for the jobs that completed since.'),
  },
  { title: 'RecentJobs' },
)

export type RecentJobs = Static<typeof RecentJobsSchema>
export type RecentJobsQuery = Static<typeof RecentJobsQuerySchema>
export type FindQuery = Static<typeof FindQuerySchema>
export type Hit = Static<typeof HitSchema>
export type Found = Static<typeof FoundSchema>

/** Checks the query of `GET /admin/find`. */
export const parseFindQuery = createQueryParser<FindQuery>(FindQuerySchema)

/** Checks the query of `GET /admin/recent`. */
export const parseRecentJobsQuery = createQueryParser<RecentJobsQuery>(RecentJobsQuerySchema)

/** Describes a failed job of a page as a hit. */
export function failedHit({ enqueuedAt, failedAt, ...summary }: FailedJobPage['jobs'][number]): Hit {
  const { reasonGroup: _group, failedThreadCount: _count, ...job } = summary
  return { kind: 'job', state: 'failed', ...job, acceptedAt: enqueuedAt, endedAt: failedAt }
}
