// The tenants on the overview, and the page of a tenant: its threads in the queue by lane, its
// share of the bounds, its refusals, and its jobs.
import { refusedNameOf, type SeenProcess, type summarize } from '@sluice/contract'
import { livingApi } from '@sluice/operations'
import { html } from 'hono/html'
import { groupTable } from './failures.ts'
import { jobTable } from './find.ts'
import {
  type Cell,
  facts,
  type Html,
  megabytes,
  type PageHandler,
  progress,
  shown,
  table,
  tenantLink,
} from './page.ts'

/** Lists the tenants with threads in the queue or with refused requests. */
export function tenantTable(tenants: ReturnType<typeof summarize>['tenants']): Html {
  const rows = tenants.map(({ tenant, threads, refused }): Cell[] => {
    return [tenantLink(tenant), threads, refused]
  })
  const ifEmpty = 'No thread is in the queue, and no request was refused in the last hour.'
  return table(
    'Tenants',
    ['Tenant', '#Threads in the queue', '#Refused in the last hour'],
    rows,
    ifEmpty,
  )
}

/**
 * Shows the tenant that the path names. There is no list of all tenants, so any name has a page.
 */
export const tenantPage: PageHandler = async (visit) => {
  const { params, view } = visit
  const tenant = String(params.tenant)
  const [load, { processes, lastHour }, { groups }, { jobs }] = await Promise.all([
    view.readTenant(tenant),
    view.readLately(),
    view.groupFailed({ tenant }),
    view.listJobs({ state: 'completed', tenant }),
  ])
  const api = livingApi(processes)
  const most = api?.queueBounds && shareOf(api.queueBounds, api.tenantShare)
  const refused = lastHour.refusedByTenant[refusedNameOf(tenant)]
  const linkTo = (state: string, text: string) =>
    html`<a href="/jobs?${new URLSearchParams({ state, tenant })}">${text}</a>`
  const about = {
    'Threads in the queue': html`${shown(load.threads)}${most && html` of ${shown(most.threads)} ${progress('Its share of the threads', load.threads, most.threads)}`}`,
    'Bytes in the queue': html`${megabytes(load.bytes)}${most && html` of ${megabytes(most.bytes)} ${progress('Its share of the bytes', load.bytes, most.bytes)}`}`,
    'Interactive threads': html`${shown(load.interactive)}${most?.interactive && html` of ${shown(most.interactive)} ${progress('Its share of the interactive lane', load.interactive, most.interactive)}`}`,
    'Bulk threads': shown(load.bulk),
    'Refused in the last hour':
      refused === undefined ? 'none, or fewer than the ten tenants with most' : shown(refused),
    Jobs: html`${linkTo('waiting', 'waiting')}, ${linkTo('active', 'active')}, ${linkTo('delayed', 'delayed')}, ${linkTo('failed', 'failed')}`,
  }
  const body = html`<div id="tenant" data-refresh>${facts(about)}
<h2>Failures</h2>${groupTable(groups)}
<h2>${linkTo('completed', 'Jobs that completed last')}</h2>
${jobTable('Completed jobs', jobs)}</div>`
  const trail = [
    html`<a href="/overview">Overview</a>`,
    html`<a href="/overview#tenants">Tenants</a>`,
  ]
  return { title: `Tenant ${tenant}`, trail, body }
}

/** Returns how much a tenant may have in the queue. */
function shareOf(
  { threads, bytes, interactive = 0 }: NonNullable<SeenProcess['queueBounds']>,
  share = 1,
) {
  return { threads: threads * share, bytes: bytes * share, interactive: interactive * share }
}
