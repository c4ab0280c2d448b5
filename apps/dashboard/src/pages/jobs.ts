// The list of jobs in each state, where operators retry and discard failed jobs, and the page of a
// job: what happened to it, its threads with their outcomes and, on request, its payload.
import { inspect } from 'node:util'
import {
  type JobListQuery,
  LISTED_STATES,
  PROBLEMS,
  parseJobListQuery,
  SERVICES,
  unlistedAttempts,
} from '@sluice/contract'
import { type Acts, groupIdOf, type JobDetail, reasonWords } from '@sluice/operations'
import { LANES } from '@sluice/queue'
import { html } from 'hono/html'
import {
  choice,
  countsOf,
  exactDuration,
  filters,
  jobTable,
  tenantField,
  tenantsOf,
} from './find.ts'
import {
  actForm,
  type Cell,
  copyable,
  discardForm,
  facts,
  type Html,
  inputOf,
  invalidPage,
  isOperator,
  type Page,
  type PageHandler,
  plural,
  reasonBlock,
  reasonLine,
  shown,
  table,
  tenantLink,
  threadLink,
  timeTag,
  traceLink,
  type Visit,
  withCode,
} from './page.ts'

/** Shows a page of the jobs of a state. */
export const jobsPage: PageHandler = async (visit) => {
  const input = inputOf(visit.query)
  const parsed = parseJobListQuery(Object.entries(input))
  if (!parsed.ok) return invalidPage('Jobs', parsed.errors, html``)
  const query = { state: 'completed', ...parsed.value } as const satisfies JobListQuery
  const { after: _, ...filter } = query
  const [{ jobs, next }, status] = await Promise.all([
    visit.view.listJobs(query),
    visit.view.readLately(),
  ])
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
  const more =
    next !== undefined &&
    html`<p><a href="${addressOf({ ...query, after: next })}">Next jobs</a></p>`
  const { since, until, ...anyTime } = filter
  const time =
    (since ?? until) &&
    html`<p>${since && html`From ${timeTag(since)} `}${until && html`until ${timeTag(until)} `}<a href="${addressOf(anyTime)}">At any time</a></p>`
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

function filterForm(
  { state, lane, tenant, service, text = '', ...of }: JobListQuery,
  tenants: Html,
): Html {
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

/** Shown if no job is selected. Only a page's script could notice that earlier. */
export const NOTHING_SELECTED: Page = {
  title: 'Nothing is selected',
  body: html`<p class="problem">No failed job was selected, so nothing was done. <a href="/jobs?state=failed">Select failed jobs</a>.</p>`,
  status: 400,
}

/** The field of a form after the question whether jobs may be discarded. */
const CONFIRMED = html`<input type="hidden" name="confirmed" value="yes">`

/** Asks whether the selected jobs may be discarded, and says what is lost. */
export const discardQuestion: PageHandler = async (visit) => {
  const found = await Promise.all(selectedIds(visit).map((id) => visit.view.readJob(id)))
  const jobs = found.filter((job) => job?.hit.state === 'failed')
  if (jobs.length === 0) return NOTHING_SELECTED
  const lost = jobs.reduce(
    (sum, job) => sum + (job?.failedThreadCount || (job?.hit.threads ?? 0)),
    0,
  )
  const ids = jobs.map((job) => html`<input type="hidden" name="id" value="${job?.hit.id}">`)
  const discard = html`${ids}${CONFIRMED}<button class="danger">Discard ${plural(jobs.length, 'job')}</button>`
  const body = html`<p class="problem">This removes ${plural(jobs.length, 'job')} for good. ${plural(lost, 'thread')} could not be stored, and would be lost.</p>
<ul>${jobs.map((job) => html`<li>${job?.hit.name}</li>`)}</ul>
<div class="acts">${actForm(visit, '/jobs/discard', discard)}<a href="/jobs?state=failed">Keep them</a></div>`
  return { title: 'Discard jobs?', body }
}

/** The most characters of the reason in the breadcrumbs. */
const SHOWN_GROUP = 100

/** The page lists at most this number of threads. */
const THREADS = 100

/**
 * Shows a job, and with `acts` also its payload. If no job has this id, redirects to the look-up.
 */
export async function jobPage(visit: Visit, acts?: Acts): ReturnType<PageHandler> {
  const id = String(visit.params.id)
  const job = await (acts?.revealJob ?? visit.view.readJob)(id)
  if (job === undefined) return `/find?q=${encodeURIComponent(id)}`
  const { hit } = job
  const { operation } = job.progress
  const { name = id, tenant, threads = 0, state, importId } = hit
  const isRevealed = acts !== undefined
  const about = {
    State: state,
    Thread: threads === 1 && threadLink(tenant, name),
    Job: copyable(id),
    Request: hit.requestId && copyable(hit.requestId),
    Import: importId && copyable(importId, html`<a href="/imports/${importId}">${importId}</a>`),
    Tenant: tenantLink(tenant),
    Key: hit.keyId && copyable(hit.keyId),
    Threads: threads,
    'Failed threads': state === 'failed' ? job.failedThreadCount : undefined,
    Lane: hit.lane,
    Attempts: hit.attempts,
    'Last retry': operation && html`<a href="/operations#${operation}">${operation}</a>`,
    Trace: traceLink(visit.traceUrl, hit.traceId),
  }
  const body = html`<div id="job" data-refresh>${facts(about)}
${hit.reason && reasonBlock(hit.reason)}</div>
${isOperator(visit) && actsOf(visit, job, isRevealed)}
<div id="history" data-refresh>${historyOf(job, hit.reason)}</div>
${isRevealed && payloadOf(job)}`
  const group = job.reasonGroup
  const above =
    group === undefined
      ? [html`<a href="/jobs">Jobs</a>`, html`<a href="/jobs?state=${state}">${state}</a>`]
      : [
          html`<a href="/failures">Failures</a>`,
          html`<a href="/failures/${groupIdOf(group)}">${withCode(reasonWords(group).slice(0, SHOWN_GROUP))}</a>`,
        ]
  return { title: `${name} · ${state} job`, trail: above, body }
}

/**
 * Shows what happened to a job, its failed threads, and the problem that its caller got.
 * @param said see `reasonLine`.
 */
export function historyOf(job: JobDetail, said = ''): Html {
  const isFailed = job.hit.state === 'failed'
  const unlisted = isFailed
    ? unlistedAttempts({ attempts: job.hit.attempts ?? 0, tries: job.tries })
    : 0
  return html`<h2>What happened</h2>${timelineOf(job, said)}
${unlisted > 0 && html`<p class="note">${plural(unlisted, 'attempt is', 'attempts are')} not listed: a worker died in it, or later ones took its place.</p>`}
${threadTable(job, said)}
${
  isFailed &&
  html`<h2>What its caller got</h2>
<p><code>${PROBLEMS.job_failed.status} job_failed</code>: ${PROBLEMS.job_failed.title}. ${PROBLEMS.job_failed.meaning}</p>`
}`
}

type Event = {
  at: string | number | undefined
  what: string
  by?: string | undefined
  reason?: string
  tone?: string
}

type TimedEvent = Omit<Event, 'at'> & { ms: number }

/** Shows the events of a job in their order. A bar shows the time from one event to the next. */
function timelineOf({ hit, tries, fetchedAt, progress }: JobDetail, said: string): Html {
  const { acceptedAt, endedAt, state, worker, outcomes } = hit
  const end =
    state === 'failed'
      ? { what: 'failed for good', tone: 'failed' }
      : { what: ['stored', ...countsOf(outcomes)].join(', '), tone: 'stored' }
  const events: Event[] = [
    { at: acceptedAt, what: 'accepted' },
    ...tries.map(attemptOf),
    { at: progress.waitingSince, what: 'went back to waiting' },
    { at: state === 'active' ? fetchedAt : undefined, what: 'fetched' },
    { at: endedAt, by: worker, ...end },
  ]
  const known = events.flatMap(({ at, ...event }) =>
    at === undefined ? [] : { ...event, ms: new Date(at).getTime() },
  )
  const ordered = foldAttempts(known.sort((one, other) => one.ms - other.ms))
  // Without a bar for the time until an operator acted, which would make all other bars too short
  // to see.
  const lasted = ordered.map(({ ms, tone }, at) =>
    tone === 'idle' ? 0 : ms - (ordered[at - 1]?.ms ?? ms),
  )
  const all = Math.max(
    lasted.reduce((sum, ms) => sum + ms, 0),
    1,
  )
  let begin = 0
  const items = ordered.map(({ ms, what, by, reason, tone = '' }, index) => {
    const [before, length = 0] = [ordered[index - 1], lasted[index]]
    const bar = html`<svg class="span" viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true"><rect x="${Math.min((begin / all) * 1000, 995).toFixed(0)}" width="${Math.max((length / all) * 1000, 5).toFixed(0)}" height="8"/></svg>`
    begin += length
    return html`<li class="${tone}"><div><strong>${what}</strong>${by && html` <span class="note">by ${by}</span>`}${reason && html` <div class="note">${reasonLine(reason, said)}</div>`}</div>
<div class="note">${before && html`after ${exactDuration(ms - before.ms)}`}${before && tone !== 'idle' && bar}</div><div>${timeTag(ms)}</div></li>`
  })
  return html`<ol class="timeline" aria-label="Timeline">${items}</ol>`
}

function attemptOf({ at, worker, reason, retriedBy }: JobDetail['tries'][number]): Event {
  return retriedBy === undefined
    ? { at, what: 'attempt failed', by: worker, reason, tone: 'failed' }
    : { at, what: 'retried by an operator', by: retriedBy, tone: 'idle' }
}

/** Combines equal attempts into one event if nothing else happened between them. */
function foldAttempts(ordered: readonly TimedEvent[]): TimedEvent[] {
  const rows: (TimedEvent & { times: number })[] = []
  for (const event of ordered) {
    const last = rows.at(-1)
    if (event.reason !== undefined && last?.reason === event.reason && last.by === event.by)
      Object.assign(last, { ms: event.ms, times: last.times + 1 })
    else rows.push({ ...event, times: 1 })
  }
  return rows.map(({ times, ...event }) =>
    times === 1 ? event : { ...event, what: `${times} attempts failed alike` },
  )
}

function actsOf(visit: Visit, job: JobDetail, isRevealed: boolean): Html {
  const { id, state, threads = 0 } = job.hit
  const isFailed = state === 'failed'
  const field = html`<input type="hidden" name="id" value="${id}">`
  return html`<div class="acts">${isFailed && actForm(visit, '/jobs/retry', html`${field}<button>Retry</button>`)}
${!isRevealed && job.threads && actForm(visit, `/jobs/${id}/reveal`, html`<button class="quiet">Reveal the payload</button>`)}
${isFailed && discardForm(visit, '/jobs/discard', { jobs: 1, threads: job.failedThreadCount || threads }, html`${field}${CONFIRMED}`)}</div>`
}

/**
 * Shows the threads of a job with several threads, beginning with those that could not be stored.
 * (The only thread of a job is among the facts.)
 */
function threadTable(
  { hit, threads = [], failedThreads, failedThreadCount }: JobDetail,
  said: string,
): Html | false {
  const reasons = new Map(failedThreads.map(({ place, reason }) => [place, reason]))
  const all = threads.map((thread, place) => ({ ...thread, place }))
  const ordered = [
    ...all.filter(({ place }) => reasons.has(place)),
    ...all.filter(({ place }) => !reasons.has(place)),
  ]
  const rows = ordered.slice(0, THREADS).map(({ service, externalId, outcome, place }): Cell[] => {
    const reason = reasons.get(place)
    const link = threadLink(hit.tenant, `${service}/${externalId}`)
    const why = reasons.size > 0 ? [reason && reasonLine(reason, said)] : []
    return [link, place + 1, outcome ?? 'not yet', ...why]
  })
  if (rows.length < 2) return false
  const failed =
    failedThreadCount > 0 &&
    html`<p class="note">${plural(failedThreadCount, 'thread')} could not be stored.</p>`
  const heads = ['Thread', 'Place', 'Outcome', ...(reasons.size > 0 ? ['Reason'] : [])]
  return html`<h2>Threads</h2>${failed}${table('Threads', heads, rows)}
${threads.length > THREADS && html`<p class="note">${plural(threads.length - THREADS, 'more thread')} are not listed.</p>`}`
}

/**
 * Bounds what is shown of a payload: enough to recognise its threads. Our payloads have no deeper
 * levels.
 */
const SHOWN = { depth: 6, maxArrayLength: 10, maxStringLength: 300, compact: false }

function payloadOf({ payload }: JobDetail): Html {
  return html`<h2 id="payload">Payload</h2><pre tabindex="0" aria-labelledby="payload" role="region">${inspect(payload, SHOWN)}</pre>`
}
