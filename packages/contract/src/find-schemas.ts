// The search of operators over the whole service: the schemas of its query and of the lines of its answer.
import type { Static } from 'typebox'
import { outcomeCounts } from './answers.ts'
import { type Parsed, refuseField } from './faults.ts'
import { count, moment, Type, text } from './json-schema.ts'
import { NOT_BLANK, SERVICES, WELL_FORMED } from './thread-request.ts'
import { createQueryParser, type Params } from './validator.ts'

export const HITS_PER_SEARCH = 200

/** The states that a search looks through, in the order in which their hits appear. */
export const FOUND_STATES = ['waiting', 'active', 'failed', 'completed', 'stored'] as const

const param = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ maxLength, format: WELL_FORMED, description }))

/** The query of `GET /admin/find`. */
export const FindQuerySchema = Type.Object(
  {
    q: Type.String({
      maxLength: 600,
      format: WELL_FORMED,
      pattern: NOT_BLANK,
      description:
        'The id of a job, a request, an import, a source or a stored quote, or the externalId of a source; of jobs also the externalId of a quote. A `*` at its end: jobs with an externalId that begins so.',
    }),
    tenant: param(200, 'The tenant.'),
    service: Type.Optional(Type.Enum(SERVICES, { type: 'string', description: 'The service of the source.' })),
    state: Type.Optional(Type.Enum(FOUND_STATES, { type: 'string', description: 'Only hits in this state.' })),
    reason: param(1_000, 'A part of the reason of a failure, in capitals or not: only failed jobs.'),
  },
  { title: 'FindQuery', additionalProperties: false },
)

const optional = Type.Optional

/** A job, an import, or a stored source or quote. */
const HitSchema = Type.Object(
  {
    kind: Type.Enum(['job', 'source', 'quote', 'import'], { type: 'string', description: 'What was found.' }),
    id: text('Its id.'),
    tenant: Type.String(),
    state: optional(Type.Enum(FOUND_STATES, { type: 'string', description: 'Its state. An import has none.' })),
    name: optional(text('service/externalId of the source; of a job found by its id, its name.')),
    quote: optional(text('The externalId of the quote that was found.')),
    sourceId: optional(text('The id of the source of a stored quote.')),
    place: optional(count('The place of the thread in its job, from 0.')),
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

/** How much was searched so far in one place. */
const SearchedSchema = Type.Object(
  {
    in: Type.Enum(['names', 'payloads', 'failed', 'completed', 'stored'], {
      type: 'string',
      description: 'What is searched; `names` and `payloads` are of jobs that wait or are active.',
    }),
    examined: count('Jobs examined so far; of stored sources and quotes: hits.'),
    isComplete: Type.Boolean({ description: 'The place was searched to its end.' }),
    note: optional(text('Why the search waits, or what it leaves out.')),
  },
  { title: 'Searched' },
)

const SearchEndSchema = Type.Object(
  {
    hits: count('Hits.'),
    more: Type.Boolean({ description: `The search ended at its bound of ${HITS_PER_SEARCH} hits.` }),
  },
  { title: 'SearchEnd' },
)

/** A line of the answer of `GET /admin/find`: a hit, how much was searched, or, as the last one, the end. */
export const FindLineSchema = Type.Union(
  [
    Type.Object({ hit: HitSchema }),
    Type.Object({ searched: SearchedSchema }),
    Type.Object({ end: SearchEndSchema }),
    Type.Object({ problem: text('Why the search could not go on.') }),
  ],
  { title: 'FindLine' },
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
export type FoundState = (typeof FOUND_STATES)[number]
export type Hit = Static<typeof HitSchema>
export type Searched = Static<typeof SearchedSchema>
export type FindLine = Static<typeof FindLineSchema>

const parseFields = createQueryParser<FindQuery>(FindQuerySchema)

/** Checks the query of `GET /admin/find`. */
export function parseFindQuery(params: Params): Parsed<FindQuery> {
  const query = parseFields(params)
  if (!query.ok) return query
  const { q, state, reason } = query.value
  if (reason !== undefined && state !== undefined && state !== 'failed')
    return refuseField('reason', 'is of failed jobs: leave out reason, or ask for the state failed.')
  return /^\*+$/.test(q) ? refuseField('q', 'needs at least one character before the *.') : query
}

/** Checks the query of `GET /admin/recent`. */
export const parseRecentJobsQuery = createQueryParser<RecentJobsQuery>(RecentJobsQuerySchema)

/** What a search compares: the whole text, or the beginning of externalIds. */
export function wantedOf({ q }: Pick<FindQuery, 'q'>): { text: string; isPrefix: boolean } {
  return q.endsWith('*') ? { text: q.slice(0, -1), isPrefix: true } : { text: q, isPrefix: false }
}
