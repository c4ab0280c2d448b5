// The operators' routes for failed jobs (list, group, show, retry and discard), for lanes (pause and resume), and for
// the operations that carry this out.
import type { LaneOperationKind, OperationKind, OperationRequest, Params, Parsed } from '@sluice/contract'
import { parseFailedJobFilter, parseFailedJobQuery, parseOperationRequest } from '@sluice/contract'
import { asViewersSee, type FailedJobs, type Operations } from '@sluice/operations'
import { isJobId, LANES, orUnavailable } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import { type BodyDeps, readBody } from '../body/read-body.ts'
import { ProblemError, requestInvalid } from '../request/problem-error.ts'
import { type Answer, type Handler, parseQuery, queryOf, type RequestContext } from '../request/request-context.ts'

/** GET /admin/jobs: a page of failed jobs, newest first. */
export function listFailedJobs({ failedJobs }: { failedJobs: Pick<FailedJobs, 'list'> }): Handler {
  return async (context) => {
    const query = parseAdminQuery(context, parseFailedJobQuery)
    return shownTo(context, await orUnavailable(failedJobs.list(query)), asViewersSee.page)
  }
}

/** GET /admin/job-groups: the failed jobs by their reason. */
export function groupFailedJobs({ failedJobs }: { failedJobs: Pick<FailedJobs, 'groups'> }): Handler {
  return async (context) => {
    const filter = parseAdminQuery(context, parseFailedJobFilter)
    return shownTo(context, await orUnavailable(failedJobs.groups(filter)), asViewersSee.groups)
  }
}

/** GET /admin/jobs/{id}: a failed job with its stacks and its payload. */
export function getFailedJob({ failedJobs }: { failedJobs: Pick<FailedJobs, 'find'> }): Handler {
  return async (context, params) => {
    context.log.jobId = String(params.id)
    const job = await orUnavailable(failedJobs.find(String(params.id)))
    if (job === undefined) throw new ProblemError('job_unknown')
    return shownTo(context, job, asViewersSee.job)
  }
}

/** @throws {ProblemError} 400; 403 if a viewer filters by reason: it could guess the values that reasons quote. */
export function parseAdminQuery<Query>(context: RequestContext, parse: (params: Params) => Parsed<Query>): Query {
  const query = parseQuery(context, parse)
  if (isViewer(context) && queryOf(context).has('reason')) throw new ProblemError('operator_only')
  return query
}

/** A viewer may see ids, and reasons without the values that they quote. */
function isViewer({ key }: Pick<RequestContext, 'key'>): boolean {
  return key?.role === 'viewer'
}

/** @param toViewers reduces what operators see to what viewers may see. */
export function shownTo<Found>(context: RequestContext, found: Found, toViewers: (found: Found) => Found): Answer {
  return { status: 200, body: isViewer(context) ? toViewers(found) : found }
}

/** POST /admin/jobs:retry and :discard: opens an operation. Any API replica may carry it out. */
export function openOperation(
  deps: BodyDeps & Pick<ApiDeps, 'limits' | 'failedJobs' | 'operations'>,
  kind: OperationKind,
): Handler {
  return async (context) => {
    const parsed = parseOperationRequest(await readBody(context, deps), deps.limits)
    if (!parsed.ok) throw requestInvalid(parsed)
    const request = untilNow(parsed.value)
    const total = 'ids' in request ? request.ids.length : await orUnavailable(deps.failedJobs.count(request.filter))
    const operation = await deps.operations.open(kind, request, total, context.key?.keyId ?? '')
    context.log.operationId = operation.id
    return { status: 202, body: operation, headers: { location: `/admin/operations/${operation.id}` } }
  }
}

/** POST /admin/lanes/{lane}:pause and :resume. */
export function operateLane({ operations }: Pick<ApiDeps, 'operations'>, kind: LaneOperationKind): Handler {
  return async (context, params) => {
    const lane = LANES.find((name) => name === params.lane)
    if (lane === undefined) throw new ProblemError('route_unknown')
    const operation = await operations.operateLane(kind, lane, context.key?.keyId ?? '')
    context.log.operationId = operation.id
    return { status: 200, body: operation }
  }
}

/** GET /admin/operations: the newest operations, and who opened them. */
export function listOperations({ operations }: { operations: Pick<Operations, 'list'> }): Handler {
  return async (context) =>
    shownTo(context, { operations: await orUnavailable(operations.list()) }, (listed) => ({
      operations: listed.operations.map(asViewersSee.operation),
    }))
}

/** GET /admin/operations/{id}: the progress of an operation. */
export function getOperation({ operations }: { operations: Pick<Operations, 'find'> }): Handler {
  return async (context, params) => {
    const id = String(params.id)
    const operation = isJobId(id) ? await orUnavailable(operations.find(id)) : undefined
    if (operation === undefined) throw new ProblemError('operation_unknown')
    return shownTo(context, operation, asViewersSee.operation)
  }
}

/** Bounds a filter to jobs that failed until now: a job that fails again after its retry is not retried again. */
function untilNow(request: OperationRequest): OperationRequest {
  if ('ids' in request || request.filter.until !== undefined) return request
  return { filter: { ...request.filter, until: new Date().toISOString() } }
}
