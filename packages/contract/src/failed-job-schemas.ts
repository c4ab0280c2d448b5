// Failed jobs and operations, for operators: schemas of requests and answers, the types that derive
// from them, and parsers of requests.
import type { Static } from 'typebox'
import { ErasedSchema } from './erasures.ts'
import { parseIsoDate } from './field-values.ts'
import {
  closed,
  count,
  moment,
  named,
  next,
  oneOf,
  optional,
  pageParameters,
  Type,
  text,
  uuid,
} from './json-schema.ts'
import { PauseSchema } from './overview-schemas.ts'
import { parseBody } from './parse-thread.ts'
import type { JsonBounds } from './refused-text.ts'
import { NOT_BLANK, SERVICES } from './thread-request.ts'
import { type Parsed, refuseText } from './validation-errors.ts'
import { createParser, createQueryParser, type Params } from './validator.ts'

export const JOBS_PER_PAGE = 100
const DEFAULT_OF_PAGE = 50
/** An operation can name at most this number of jobs. A filter may match any number. */
const IDS_PER_OPERATION = 1_000
/**
 * A list has at most this number of operations, the newest ones. At most the same number can be
 * open at a time.
 */
export const OPERATIONS_LISTED = 100

const param = (maxLength: number, description: string) =>
  optional(Type.String({ maxLength, description }))

/** The parameter that names a group of failed jobs. */
export function groupParameter(description: string) {
  return optional(Type.String({ pattern: '^[0-9a-f]{8}$', description }))
}

/** Refuses a blank filter: a script's empty variable would choose the jobs of all tenants. */
const filter = (maxLength: number, description: string) =>
  optional(Type.String({ maxLength, pattern: NOT_BLANK, description }))

const filterFields = {
  tenant: filter(200, 'The tenant of the job.'),
  service: optional(oneOf(SERVICES, 'The service of one of its threads.')),
  externalId: param(
    2_000,
    'The externalId of one of its threads, the same one if `service` is given.',
  ),
  reason: filter(1_000, 'A part of the reason of the failure, in capitals or not.'),
  group: groupParameter('The id of a group of `GET /admin/job-groups`.'),
  operation: optional(uuid('The retry after which the job failed again.')),
  since: optional(moment('The job failed at this time or later.')),
  until: optional(moment('The job failed at this time or earlier.')),
}

/**
 * Selects the failed jobs that match all fields. An unknown field is an error, because with a
 * mistyped field the filter would match too much.
 */
export const FailedJobFilterSchema = closed('FailedJobFilter', filterFields)

const PLACE = /^(\d{1,15})\.([\w-]{1,80})$/

export const FailedJobQuerySchema = closed('FailedJobQuery', {
  ...filterFields,
  ...pageParameters({ most: JOBS_PER_PAGE, byDefault: DEFAULT_OF_PAGE, cursor: PLACE.source }),
})

/**
 * The body of `POST /admin/jobs:retry` and `POST /admin/jobs:discard`: either `ids` or `filter`.
 */
export const OperationRequestSchema = closed('OperationRequest', {
  ids: optional(Type.Array(Type.String({ maxLength: 100 }), { maxItems: IDS_PER_OPERATION })),
  filter: optional(FailedJobFilterSchema),
})

const FAILED_THREADS = count('Threads of the job that could not be stored.')

const summary = {
  id: uuid('The id of the job.'),
  tenant: Type.String(),
  name: text('service/externalId; of several threads the first and the last.'),
  threads: count('Threads of the job. A job of an import has up to fifty.'),
  failedThreadCount: Type.Optional(FAILED_THREADS),
  lane: text('interactive or bulk.'),
  enqueuedAt: moment('When the job was accepted.'),
  failedAt: moment('When the job failed for good.'),
  attempts: count('All attempts of the job, also before an operator retried it.'),
  reason: text('The error of the last attempt.'),
  reasonGroup: text('The same, with … for each quoted text, number and id.'),
}

export const FailedJobPageSchema = named('FailedJobPage', {
  jobs: Type.Array(Type.Object(summary)),
  next,
})

export const GROUPS_LISTED = 200

/** The trend of a group has this number of hours. */
export const TREND_HOURS = 24

export const FailedJobGroupsSchema = named('FailedJobGroups', {
  groups: Type.Array(
    Type.Object({
      id: text('A short id of the group: `group` of a filter.'),
      reasonGroup: summary.reasonGroup,
      hours: Type.Array(count('Jobs.'), {
        description: `Jobs that failed in each of the last ${TREND_HOURS} hours, the oldest hour first.`,
      }),
      jobs: count('Failed jobs of this reason.'),
      threads: count('Threads of these jobs that could not be stored.'),
      jobId: uuid('The newest of these jobs.'),
      reason: text('Its reason.'),
      oldestAt: moment('When the oldest of them failed.'),
      newestAt: moment('When the newest of them failed.'),
    }),
    { maxItems: GROUPS_LISTED },
  ),
  isComplete: Type.Boolean({
    description: 'All failed jobs were examined, and all groups are listed.',
  }),
})

const RecordedAttemptSchema = Type.Object({
  retriedBy: Type.Optional(text('As `by` of an operation: this row is its retry, not an attempt.')),
  at: moment('When the attempt ended, or when the job was retried.'),
  worker: text('`hostname` and `pid` of the worker, as its log has them.'),
  reason: text('The beginning of its reason.'),
})

const FailedThreadSchema = Type.Object({
  place: count('Its place among the threads of the payload, from 0.'),
  service: Type.String(),
  externalId: Type.String(),
  reason: text('The beginning of its reason in the last attempt.'),
})

export const FailedJobSchema = named('FailedJob', {
  ...summary,
  keyId: optional(text('The id of the key that posted it.')),
  tries: Type.Array(RecordedAttemptSchema, {
    description: 'The last failed attempts and retries, oldest first.',
  }),
  failedThreads: Type.Array(FailedThreadSchema, {
    description: 'Threads that could not be stored, as many as fit.',
  }),
  failedThreadCount: FAILED_THREADS,
  stack: Type.Array(Type.String(), {
    description: 'The stack of each failed attempt, oldest first.',
  }),
  payload: Type.Unknown({ description: 'The job as it was enqueued, with its threads.' }),
})

const why = param(200, 'Why, for people who see that the lane is paused.')
const MONTH_SECONDS = 31 * 24 * 60 * 60
const seconds = Type.Integer({
  minimum: 1,
  maximum: MONTH_SECONDS,
  description: 'After this time, the pause ends by itself.',
})
/** The query of `POST /admin/lanes/{lane}:pause`. */
export const PauseQuerySchema = closed('PauseQuery', { why, seconds: optional(seconds) })
/** The query of `POST /admin/lanes/{lane}:resume`. */
export const ResumeQuerySchema = closed('ResumeQuery', { why })

/**
 * The answer of `GET /admin/operations/{id}`. Pausing or resuming a lane is an operation that
 * completes immediately.
 */
export const OperationSchema = named('Operation', {
  id: uuid('The id of the operation.'),
  kind: oneOf(['retry', 'discard', 'pause', 'resume', 'erase', 'delete', 'retain']),
  by: text(
    "The id of the operator's key (`sluice keys list`), or the user that made the operator's login link.",
  ),
  filter: optional(FailedJobFilterSchema),
  erases: optional(ErasedSchema),
  reasonGroup: optional(text('What the reasons of the failures of `filter.group` have in common.')),
  lane: optional(oneOf(['interactive', 'bulk'], 'The lane that was paused or resumed.')),
  why: optional(text('What the operator said about it.')),
  pause: optional(PauseSchema),
  state: oneOf(['waiting', 'active', 'completed']),
  createdAt: moment('When it was asked for.'),
  changedAt: moment('When its progress was last recorded.'),
  total: count(
    'Jobs to examine: the named ones, or the failed jobs of the time that the filter gives.',
  ),
  examined: count('Jobs examined so far.'),
  done: count(
    'Jobs that were retried or discarded, quotes that were erased, or threads that were deleted.',
  ),
  stored: optional(count('Of the retried jobs: those that were stored since.')),
  failedAgain: optional(count('Of the retried jobs: those that failed for good again.')),
  failed: optional(count('Its jobs of deletions that failed for good.')),
})

export const OperationListSchema = named('OperationList', {
  operations: Type.Array(OperationSchema),
})

export type FailedJobFilter = Static<typeof FailedJobFilterSchema>
export type FailedJobPage = Static<typeof FailedJobPageSchema>
export type FailedJobGroups = Static<typeof FailedJobGroupsSchema>
export type FailedJob = Static<typeof FailedJobSchema>
export type RecordedAttempt = Static<typeof RecordedAttemptSchema>
export type FailedThread = Static<typeof FailedThreadSchema>
export type Operation = Static<typeof OperationSchema>
export type LaneOperationKind = 'pause' | 'resume'
/** Erases a speaker, or deletes a tenant, or threads that have been kept for their time. */
export type ThreadOperationKind = 'erase' | 'delete' | 'retain'
export type OperationKind = Exclude<Operation['kind'], LaneOperationKind | ThreadOperationKind>
/**
 * A cursor among failed jobs, newest first: when the job failed, in ms since 1970, and the job's
 * id.
 */
export type FailedJobPlace = { at: number; id: string }
export type FailedJobQuery = {
  filter: FailedJobFilter
  limit: number
  after?: FailedJobPlace | undefined
}
export type OperationRequest =
  | { ids: string[] }
  | ({ filter: FailedJobFilter } & Pick<Operation, 'erases' | 'why'>)

/** Checks the query of `GET /admin/job-groups`. */
export const parseFailedJobFilter = createQueryParser(FailedJobFilterSchema)

const parseQueryFields = createQueryParser(FailedJobQuerySchema)
const parseOperation = createParser(OperationRequestSchema)

/** Checks the query of `GET /admin/jobs`. */
export function parseFailedJobQuery(params: Params): Parsed<FailedJobQuery> {
  const query = parseQueryFields(params)
  if (!query.ok) return query
  const { limit = DEFAULT_OF_PAGE, after, ...filter } = query.value
  const place = readPlace(after ?? '')
  return { ok: true, value: { filter, limit, ...(place && { after: place }) } }
}

export type PauseQuery = Static<typeof PauseQuerySchema>
export const parsePauseQuery = createQueryParser(PauseQuerySchema)
export const parseResumeQuery = createQueryParser(ResumeQuerySchema)

/** Parses an `OperationRequest`, within bounds for the levels and the number of its values. */
export function parseOperationRequest(text: Buffer, limits: JsonBounds): Parsed<OperationRequest> {
  const request = parseBody(text, limits, parseOperation)
  if (!request.ok) return request
  const { ids, filter } = request.value
  if (ids !== undefined && filter === undefined) return { ok: true, value: { ids } }
  if (filter !== undefined && ids === undefined)
    return { ok: true, value: { filter: inUtc(filter) } }
  return refuseText('required', 'Give either ids or filter; an empty filter means all failed jobs.')
}

/**
 * Writes the dates of a filter in full and in UTC, because people see the operation with its
 * filter.
 */
function inUtc({ since, until, ...filter }: FailedJobFilter): FailedJobFilter {
  const [from, to] = [since, until].map((date) => date && parseIsoDate(date))
  return { ...filter, ...(from && { since: from }), ...(to && { until: to }) }
}

/** Reads a cursor. Returns undefined if the text is not a cursor. */
export function readPlace(text: string): FailedJobPlace | undefined {
  const [, at, id] = PLACE.exec(text) ?? []
  return id === undefined ? undefined : { at: Number(at), id }
}

/** Writes a cursor in the form of `next` and `after`. */
export function placeText({ at, id }: FailedJobPlace): string {
  return `${at}.${id}`
}

/**
 * Returns how many of a job's attempts are missing in `tries`: their worker died, or they are too
 * old to be kept.
 */
export function unlistedAttempts({
  attempts,
  tries,
}: Pick<FailedJob, 'attempts' | 'tries'>): number {
  return Math.max(attempts - tries.filter(({ retriedBy }) => retriedBy === undefined).length, 0)
}
