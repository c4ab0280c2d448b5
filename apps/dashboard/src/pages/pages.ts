// The pages and the acts of the dashboard, by their paths. Each act is logged with its operator.
import type { LaneOperationKind, OperationKind, OperationRequest } from '@sluice/contract'
import { parseFailedJobFilter } from '@sluice/contract'
import { LANES, orUnavailable } from '@sluice/queue'
import { groupPage, groupsPage, operationsPage } from './failures.ts'
import { findBox, findPage, recentPage } from './find.ts'
import { importPage, importsPage } from './imports.ts'
import { jobPage } from './job.ts'
import { overviewPage } from './overview.ts'
import type { Show, Visit } from './page.ts'
import { threadPage } from './thread.ts'

/** What GET shows. */
export const pages: Record<string, Show> = {
  '/': findBox,
  '/find': findPage,
  '/thread': threadPage,
  '/recent': recentPage,
  '/overview': overviewPage,
  '/failures': groupsPage,
  '/failures/:group': groupPage,
  '/jobs/:id': jobPage,
  '/imports': importsPage,
  '/imports/:id': importPage,
  '/operations': operationsPage,
}

/** Opens an operation on failed jobs, which an API carries out. */
function operate(kind: OperationKind, requestOf: (visit: Visit) => OperationRequest | undefined): Show {
  return async (visit, { failedJobs, operations, log }) => {
    const request = requestOf(visit)
    if (request === undefined) return undefined
    const { by } = visit.visitor
    const total = 'ids' in request ? request.ids.length : await orUnavailable(failedJobs.count(request.filter))
    const { id: operationId } = await operations.open(kind, request, total, by)
    log.info({ operator: by, kind, operationId }, 'operation.opened')
    return '/operations'
  }
}

function operateLane(kind: LaneOperationKind): Show {
  return async ({ params, visitor }, { operations, log }) => {
    const lane = LANES.find((name) => name === params.lane)
    if (lane === undefined) return undefined
    const { id: operationId } = await operations.operateLane(kind, lane, visitor.by)
    log.info({ operator: visitor.by, kind, lane, operationId }, 'operation.opened')
    return '/overview'
  }
}

function named({ params }: Visit): OperationRequest {
  return { ids: [String(params.id)] }
}

function grouped({ body }: Visit): OperationRequest | undefined {
  const { reasonGroup, until } = Object(body)
  // Without one of them, the filter would match other jobs than the page named. A form of the page has both.
  if (typeof reasonGroup !== 'string' || typeof until !== 'string') return undefined
  const filter = parseFailedJobFilter(Object.entries({ reasonGroup, until }))
  return filter.ok ? { filter: filter.value } : undefined
}

/** What POST does, for operators only. */
export const acts: Record<string, Show> = {
  '/failures/retry': operate('retry', grouped),
  '/failures/discard': operate('discard', grouped),
  '/jobs/:id/retry': operate('retry', named),
  '/jobs/:id/discard': operate('discard', named),
  '/lanes/:lane/pause': operateLane('pause'),
  '/lanes/:lane/resume': operateLane('resume'),
  '/thread/reveal': async (visit, deps) => {
    const { tenant, service, externalId } = Object.fromEntries(visit.query)
    deps.log.info({ operator: visit.visitor.by, tenant, service, externalId }, 'payload.revealed')
    return threadPage(visit, deps, true)
  },
  '/jobs/:id/reveal': async (visit, deps) => {
    deps.log.info({ operator: visit.visitor.by, jobId: visit.params.id }, 'payload.revealed')
    return jobPage(visit, deps, true)
  },
}
