// The pages and the acts of the dashboard, by their paths.
import {
  type LaneOperationKind,
  type OperationKind,
  type OperationRequest,
  parseFailedJobFilter,
} from '@sluice/contract'
import type { Logger } from '@sluice/ops'
import { type FailedJobs, type Find, type Imports, LANES, type Operations } from '@sluice/queue'
import { html } from 'hono/html'
import { failurePages } from './failures.ts'
import { createSearch, findBox, findPage, type Search } from './find.ts'
import { importPage, importsPage } from './imports.ts'
import { askDiscardJob, jobPage } from './job.ts'
import type { Page, Visit } from './layout.ts'
import { openOperation, operationsPage } from './operations.ts'
import { type OverviewDeps, overviewPage } from './overview.ts'
import { type RecentDeps, recentPage } from './recent.ts'
import { type ThreadDeps, threadPage } from './thread.ts'

export interface PagesDeps extends OverviewDeps, RecentDeps, ThreadDeps {
  failedJobs: FailedJobs
  operations: Pick<Operations, 'open' | 'list' | 'operateLane'>
  imports: Pick<Imports, 'find' | 'list'>
  find: Find
  log: Pick<Logger, 'info'>
}

/** A request, as far as pages need it. */
interface Asked {
  body: unknown
  /** Aborts when nobody waits for the page any more. */
  gone: AbortSignal
}

/** Returns a page, the path of another one, or nothing if the address has none. */
export type Show = (visit: Visit, asked: Asked) => Promise<Page | string | undefined>

/** What GET shows, and what POST does. Discards are asked for by GET, and only operators may ask. */
export function pages(deps: PagesDeps): Record<'all' | 'operators' | 'acts', Record<string, Show>> {
  const failures = failurePages(deps)
  const search = createSearch(deps.find, deps.traceUrl)
  return {
    all: {
      '/': findBox,
      '/find': (visit, { gone }) => findPage(search, visit, gone),
      '/thread': (visit, { gone }) => threadPage(deps, search, visit, gone),
      '/recent': (visit) => recentPage(deps, visit),
      '/overview': (visit) => overviewPage(deps, visit),
      '/failures': failures.groups,
      '/failures/:group': failures.group,
      '/jobs/:id': (visit) => jobPage(deps, visit),
      '/imports': () => importsPage(deps.imports),
      '/imports/:id': (visit) => importPage(deps.imports, visit),
      '/operations': (visit) => operationsPage(deps.operations, visit),
    },
    operators: {
      '/failures/:group/discard': failures.askDiscard,
      '/jobs/:id/discard': (visit) => askDiscardJob(deps, visit),
    },
    acts: acts(deps, search),
  }
}

/** What POST does, for operators only. Each is logged with its operator. */
function acts(deps: PagesDeps, search: Search): Record<string, Show> {
  const operate =
    (kind: OperationKind, requestOf: (visit: Visit, asked: Asked) => OperationRequest | undefined): Show =>
    async (visit, asked) => {
      const request = requestOf(visit, asked)
      if (request === undefined) return INCOMPLETE
      const operationId = await openOperation(deps, kind, request, visit)
      if (operationId === undefined) return FULL
      deps.log.info({ operator: visit.visitor.by, kind, operationId }, 'operation.opened')
      return '/operations'
    }
  const operateLane =
    (kind: LaneOperationKind): Show =>
    async ({ params, visitor }) => {
      const lane = LANES.find((name) => name === params.lane)
      if (lane === undefined) return undefined
      const { id: operationId } = await deps.operations.operateLane(kind, lane, visitor.by)
      deps.log.info({ operator: visitor.by, kind, lane, operationId }, 'operation.opened')
      return '/overview'
    }
  const named = ({ params }: Visit): OperationRequest => ({ ids: [String(params.id)] })
  const grouped = (_visit: Visit, { body }: Asked): OperationRequest | undefined => {
    const { reasonGroup, until } = Object(body)
    // Without one of them, the filter would match other jobs than the page named.
    const filter = parseFailedJobFilter({ reasonGroup: reasonGroup ?? null, until: until ?? null })
    return filter.ok ? { filter: filter.value } : undefined
  }
  return {
    '/failures/retry': operate('retry', grouped),
    '/failures/discard': operate('discard', grouped),
    '/jobs/:id/retry': operate('retry', named),
    '/jobs/:id/discard': operate('discard', named),
    '/lanes/:lane/pause': operateLane('pause'),
    '/lanes/:lane/resume': operateLane('resume'),
    '/thread/reveal': async (visit, { gone }) => {
      const { tenant, service, externalId } = Object.fromEntries(visit.query)
      deps.log.info({ operator: visit.visitor.by, tenant, service, externalId }, 'payload.revealed')
      return threadPage(deps, search, visit, gone, true)
    },
    '/jobs/:id/reveal': async (visit) => {
      deps.log.info({ operator: visit.visitor.by, jobId: visit.params.id }, 'payload.revealed')
      return jobPage(deps, visit, true)
    },
  }
}

const INCOMPLETE: Page = {
  title: 'The form is incomplete',
  body: html`<p>Load the page of the <a href="/failures">failures</a> again.</p>`,
  status: 400,
}

const FULL: Page = {
  title: 'Too many operations are open',
  body: html`<p>Wait until some of the <a href="/operations">open ones</a> are completed.</p>`,
  status: 503,
}
