// The list of jobs in each state, with filters. Operators retry and discard the failed jobs that they select.
import { type JobListQuery, LISTED_STATES, parseJobListQuery, SERVICES } from '@sluice/contract'
import { LANES } from '@sluice/queue'
import { html } from 'hono/html'
import { choice, filters, jobTable, tenantField, tenantsOf } from './find.ts'
import { actForm, count, moment, shown } from './layout.ts'
import { faultPage, type Html, inputOf, isOperator, type Page, type Show, type Visit } from './page.ts'

/** Shows a page of the jobs of a state. */
export const jobsPage: Show = async (visit) => {
  const input = inputOf(visit.query)
  const parsed = parseJobListQuery(Object.entries(input))
  if (!parsed.ok) return faultPage('Jobs', parsed.errors, html``)
  const query = { state: 'completed', ...parsed.value } as const satisfies JobListQuery
  const { after: _, ...filter } = query
  const [{ jobs, next }, status] = await Promise.all([visit.view.listJobs(query), visit.view.readLately()])
  const counts = new Map<string, number>()
  for (const { state, jobs: of } of status.queued) counts.set(state, (counts.get(state) ?? 0) + of)
  const states = LISTED_STATES.map((state) => {
    const isHere = state === query.state && html` aria-current="page"`
    const number = counts.get(state)
    const name = state === 'completed' ? 'completed lately' : state
    return html`<a href="${addressOf({ ...filter, state })}"${isHere}>${name} ${number !== undefined && shown(number)}</a>`
  })
  const maySelect = query.state === 'failed' && isOperator(visit)
  const ifEmpty = next === undefined ? 'No job.' : 'No job so far.'
  const list = html`<div id="jobs" data-refresh>${jobTable('Jobs', jobs, { ifEmpty, maySelect })}</div>`
  const more = next !== undefined && html`<p><a href="${addressOf({ ...query, after: next })}">Next jobs</a></p>`
  const { since, until, ...anyTime } = filter
  const time =
    (since ?? until) &&
    html`<p>${since && html`From ${moment(since)} `}${until && html`until ${moment(until)} `}<a href="${addressOf(anyTime)}">At any time</a></p>`
  const body = html`<nav aria-label="States">${states}</nav>${time}
${filterForm(query, await tenantsOf(visit))}
${maySelect ? actForm(visit, '/jobs/retry', html`${list}${SELECTED_ACTS}`) : list}${more}`
  return { title: `Jobs: ${query.state}`, body, shows: status }
}

const SELECTED_ACTS = html`<div class="acts selection"><label class="all" hidden><input type="checkbox"> All</label>
<output>Select jobs</output> <button>Retry</button> <button class="danger" formaction="/jobs/discard">Discard …</button></div>`

function addressOf(query: JobListQuery): string {
  return `/jobs?${new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined))}`
}

function filterForm({ state, lane, tenant, service, text = '', ...of }: JobListQuery, tenants: Html): Html {
  const { group, operation, worker, since, until } = of
  const hidden = Object.entries({ state, group, operation, worker, since, until }).filter(
    ([, value]) => value !== undefined,
  )
  const isFiltered = [lane, tenant, service, text].some(Boolean)
  const fields = html`${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<p><label for="text">A part of the name, or an id</label><input id="text" name="text" type="search" value="${text}"></p>
${choice('service', 'Service', SERVICES, service)}
${state !== 'completed' && choice('lane', 'Lane', LANES, lane)}
${tenantField(tenant)}${tenants}`
  return filters('/jobs', isFiltered, fields)
}

/** The ids that a form has selected. */
export function selectedIds({ body }: Visit): string[] {
  const { id } = Object(body)
  return [id].flat().filter((one): one is string => typeof one === 'string')
}

/** Without its script, a page can't know that no job is selected. */
export const NOTHING_SELECTED: Page = {
  title: 'Nothing is selected',
  body: html`<p class="problem">No failed job was selected, so nothing was done. <a href="/jobs?state=failed">Select failed jobs</a>.</p>`,
  status: 400,
}

/** The field of a form that has asked whether jobs may be discarded. */
export const CONFIRMED = html`<input type="hidden" name="confirmed" value="yes">`

/** Asks whether the selected jobs may be discarded, and says what is lost. */
export const discardQuestion: Show = async (visit) => {
  const found = await Promise.all(selectedIds(visit).map((id) => visit.view.readJob(id)))
  const jobs = found.filter((job) => job?.hit.state === 'failed')
  if (jobs.length === 0) return NOTHING_SELECTED
  const lost = jobs.reduce((sum, job) => sum + (job?.failedThreadCount || (job?.hit.threads ?? 0)), 0)
  const ids = jobs.map((job) => html`<input type="hidden" name="id" value="${job?.hit.id}">`)
  const discard = html`${ids}${CONFIRMED}<button class="danger">Discard ${count(jobs.length, 'job')}</button>`
  const body = html`<p class="problem">This removes ${count(jobs.length, 'job')} for good. ${count(lost, 'thread')} could not be stored, and would be lost.</p>
<ul>${jobs.map((job) => html`<li>${job?.hit.name}</li>`)}</ul>
<div class="acts">${actForm(visit, '/jobs/discard', discard)}<a href="/jobs?state=failed">Keep them</a></div>`
  return { title: 'Discard jobs?', body }
}
