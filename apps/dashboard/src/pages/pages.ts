// The pages and the acts of the dashboard, by path. Each act is logged with its operator.
import type {
  LaneOperationKind,
  OperationKind,
  OperationRequest,
  Parsed,
  PauseQuery,
} from '@sluice/contract'
import {
  DURATION_FORM,
  durationSeconds,
  parseFailedJobFilter,
  parseFindQuery,
  parsePauseQuery,
  refuseField,
} from '@sluice/contract'
import { requireActs } from '@sluice/operations'
import { html } from 'hono/html'
import { groupPage, groupsPage, operationsPage } from './failures.ts'
import { findBox, findPage } from './find.ts'
import { importPage, importsPage } from './imports.ts'
import { discardQuestion, jobPage, jobsPage, NOTHING_SELECTED, selectedIds } from './jobs.ts'
import { overviewPage } from './overview.ts'
import { invalidPage, type PageHandler, type Visit } from './page.ts'
import { processPage } from './processes.ts'
import { tenantPage } from './tenants.ts'
import { threadPage } from './thread.ts'

/** What GET shows. */
export const pages: Record<string, PageHandler> = {
  '/': findBox,
  '/find': findPage,
  '/thread': threadPage,
  '/overview': overviewPage,
  '/failures': groupsPage,
  '/failures/:group': groupPage,
  '/jobs': jobsPage,
  '/jobs/:id': jobPage,
  '/imports': importsPage,
  '/imports/:id': importPage,
  '/operations': operationsPage,
  '/processes/:id': processPage,
  '/tenants/:tenant': tenantPage,
}

/** Opens an operation on failed jobs. An API then carries it out. */
function operate(
  kind: OperationKind,
  requestOf: (visit: Visit) => OperationRequest | undefined,
): PageHandler {
  return async (visit) => {
    const acts = requireActs(visit.view)
    const request = requestOf(visit)
    if (request === undefined) return undefined
    if ('ids' in request && request.ids.length === 0) return NOTHING_SELECTED
    const { id: operationId } = await acts.operate(kind, request)
    visit.log.info({ operator: visit.visitor.by, kind, operationId }, 'operation.opened')
    return `/operations#${operationId}`
  }
}

function operateLane(kind: LaneOperationKind): PageHandler {
  return async ({ params, body, visitor, view, log }) => {
    const acts = requireActs(view)
    const query = kind === 'pause' ? pauseOf(params.lane, body) : ({ ok: true, value: {} } as const)
    if (!query.ok) return invalidPage(`The ${params.lane} lane was not paused`, query.errors, BACK)
    const operation = await acts.operateLane(kind, params.lane, query.value)
    if (operation === undefined) return undefined
    const { id: operationId, lane } = operation
    log.info({ operator: visitor.by, kind, lane, operationId }, 'operation.opened')
    return '/overview'
  }
}

const BACK = html`<p><a href="/overview">Back to the overview</a></p>`

/**
 * Reads the form that pauses a lane. `for` is a duration, in the form that `sluice pause` accepts.
 */
function pauseOf(lane: string | undefined, body: unknown): Parsed<PauseQuery> {
  const form = new Map(
    Object.entries(Object(body)).map(([name, value]) => [name, String(value).trim()]),
  )
  const [why, time] = [form.get('why') ?? '', form.get('for') ?? '']
  const seconds = time === '' ? undefined : durationSeconds(time)
  if (lane === 'interactive' && form.get('confirmed') !== 'yes')
    return refuseField(
      'confirmed',
      'must be checked: callers that wait get no answer in time.',
      'required',
    )
  if (time !== '' && seconds === undefined)
    return refuseField('for', `is not a duration. ${DURATION_FORM}`)
  const fields = { ...(why && { why }), ...(seconds !== undefined && { seconds: String(seconds) }) }
  return parsePauseQuery(Object.entries(fields))
}

function selected(visit: Visit): OperationRequest {
  return { ids: selectedIds(visit) }
}

function grouped({ body }: Visit): OperationRequest | undefined {
  const { group, until } = Object(body)
  // A form of the page has both fields. Without one of them, the filter would match other jobs than
  // the page named.
  if (typeof group !== 'string' || typeof until !== 'string') return undefined
  const filter = parseFailedJobFilter(Object.entries({ group, until }))
  return filter.ok ? { filter: filter.value } : undefined
}

/** The handlers of POST, for operators only. */
export const acts: Record<string, PageHandler> = {
  '/failures/retry': operate('retry', grouped),
  '/failures/discard': operate('discard', grouped),
  '/jobs/retry': operate('retry', selected),
  // The form of the list asks for a confirmation first. The forms that send `confirmed` are on that
  // page and on the page of a job.
  '/jobs/discard': (visit) => {
    requireActs(visit.view)
    const isConfirmed = Object(visit.body).confirmed === 'yes'
    return isConfirmed ? operate('discard', selected)(visit) : discardQuestion(visit)
  },
  '/lanes/:lane/pause': operateLane('pause'),
  '/lanes/:lane/resume': operateLane('resume'),
  '/thread/reveal': async (visit) => {
    const acts = requireActs(visit.view)
    const { tenant, service, externalId } = Object.fromEntries(visit.query)
    visit.log.info({ operator: visit.visitor.by, tenant, service, externalId }, 'payload.revealed')
    return threadPage(visit, acts)
  },
  '/thread/delete': async ({ view, query, visitor, log }) => {
    const acts = requireActs(view)
    const { tenant = '', service = '', externalId = '' } = Object.fromEntries(query)
    const named = parseFindQuery(Object.entries({ q: externalId, service }))
    if (!named.ok || named.value.service === undefined || tenant === '') return undefined
    const thread = { tenant, service: named.value.service, externalId }
    const { id: operationId } = await acts.deleteThread(thread)
    log.info({ operator: visitor.by, kind: 'delete', ...thread, operationId }, 'operation.opened')
    return `/operations#${operationId}`
  },
  '/jobs/:id/reveal': async (visit) => {
    const acts = requireActs(visit.view)
    visit.log.info({ operator: visit.visitor.by, jobId: visit.params.id }, 'payload.revealed')
    return jobPage(visit, acts)
  },
}
