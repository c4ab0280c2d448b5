// Operators' look-ups over the whole service: the schemas of queries and answers.
import type { Static } from 'typebox'
import { outcomeCounts } from './answers.ts'
import { type FailedJobPage, groupParameter } from './failed-job-schemas.ts'
import { closed, count, moment, named, oneOf, optional, Type, text, uuid } from './json-schema.ts'
import { required, SERVICES, WELL_FORMED } from './thread-request.ts'
import { createQueryParser } from './validator.ts'

/** An answer has at most this number of hits. */
export const HITS_SHOWN = 200

const param = (maxLength: number, description: string) =>
  optional(Type.String({ maxLength, format: WELL_FORMED, description }))

export const FindQuerySchema = closed('FindQuery', {
  q: required(
    600,
    'An externalId, or the id of a job, an import, a source, a quote, or a completed job’s request or key.',
  ),
  tenant: param(200, 'The tenant.'),
  service: optional(oneOf(SERVICES, 'The service of the source.')),
  reason: param(1_000, 'A part of the reason of a failure, in capitals or not: only failed jobs.'),
})

/** A job, an import, or a stored source or quote. */
const HitSchema = named('Hit', {
  kind: oneOf(['job', 'source', 'quote', 'import'], 'What was found.'),
  id: text('Its id.'),
  tenant: Type.String(),
  state: optional(
    oneOf(
      ['waiting', 'delayed', 'active', 'failed', 'completed', 'stored'],
      'Its state; `delayed`: between two attempts. An import has none.',
    ),
  ),
  name: optional(
    text(
      'service/externalId of the source; of a job with several threads, the first and the last.',
    ),
  ),
  quote: optional(text('The externalId of the quote that was found.')),
  sourceId: optional(text('The id of the source of a stored quote.')),
  threads: optional(count('The threads of the job, or of the import.')),
  lane: optional(text('interactive or bulk.')),
  requestId: optional(text('The request of the job.')),
  keyId: optional(text('The id of the key that posted the job.')),
  traceId: optional(text('The trace of the request, if it was traced.')),
  importId: optional(text('The import of the job.')),
  acceptedAt: optional(moment('When the job, or the first request for the source, was accepted.')),
  endedAt: optional(moment('When the job was stored, or failed for good.')),
  attempts: optional(count('Attempts of the job so far.')),
  reason: optional(text('The error of the last attempt, cut.')),
  outcomes: optional(
    Type.Object({ ...outcomeCounts, deleted: optional(count('How many are deleted.')) }),
  ),
  worker: optional(text('The worker that stored the job.')),
  insertedBy: optional(text('The job that inserted the document.')),
  changedBy: optional(text('The job that changed it last.')),
})

export const FindAnswerSchema = named('FindAnswer', {
  hits: Type.Array(HitSchema, {
    description: 'In the order in which a job moves, and at last what is stored.',
  }),
  more: Type.Boolean({ description: `There are more than ${HITS_SHOWN} hits.` }),
  notes: Type.Array(Type.String(), { description: 'What was not looked up, and why.' }),
})

export const RecentJobsQuerySchema = closed('RecentJobsQuery', {
  after: optional(
    Type.String({ pattern: '^\\d{1,15}-\\d{1,15}$', description: '`next` of the answer before.' }),
  ),
})

export const RecentJobsSchema = named('RecentJobs', {
  jobs: Type.Array(HitSchema, { description: 'Completed jobs, oldest first.' }),
  next: text('Give it as `after` for the jobs that completed since.'),
})

/** The states by which jobs can be listed, in the order in which a job passes them. */
export const LISTED_STATES = ['waiting', 'delayed', 'active', 'failed', 'completed'] as const

/** The query of the dashboard's list of jobs. */
export const JobListQuerySchema = closed('JobListQuery', {
  state: optional(oneOf(LISTED_STATES)),
  lane: optional(oneOf(['interactive', 'bulk'])),
  tenant: param(200, 'The tenant.'),
  service: optional(oneOf(SERVICES, 'The service of the first or last thread.')),
  text: param(600, 'A part of the name of the job, or its id.'),
  group: groupParameter('Of failed jobs: the id of their group.'),
  operation: optional(uuid('Of failed jobs: the operation that retried them.')),
  worker: param(300, 'Of completed jobs: the worker that stored them.'),
  since: optional(moment('They ended, or were accepted if they did not, at this time or later.')),
  until: optional(moment('The same, before this time.')),
  after: param(100, '`next` of the page before.'),
})

export type ListedState = (typeof LISTED_STATES)[number]
export type JobListQuery = Static<typeof JobListQuerySchema>

/** Checks the query of the dashboard's list of jobs. */
export const parseJobListQuery = createQueryParser(JobListQuerySchema)

export type RecentJobs = Static<typeof RecentJobsSchema>
export type RecentJobsQuery = Static<typeof RecentJobsQuerySchema>
export type FindQuery = Static<typeof FindQuerySchema>
export type Hit = Static<typeof HitSchema>
export type FindAnswer = Static<typeof FindAnswerSchema>

/** Checks the query of `GET /admin/find`. */
export const parseFindQuery = createQueryParser(FindQuerySchema)

/** Checks the query of `GET /admin/recent`. */
export const parseRecentJobsQuery = createQueryParser(RecentJobsQuerySchema)

/** Converts a failed job of a page to a hit. */
export function failedHit({
  enqueuedAt,
  failedAt,
  ...summary
}: FailedJobPage['jobs'][number]): Hit {
  const { reasonGroup: _group, failedThreadCount: _count, ...job } = summary
  return { kind: 'job', state: 'failed', ...job, acceptedAt: enqueuedAt, endedAt: failedAt }
}
