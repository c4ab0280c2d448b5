// The page of a job in any state: what happened to it, its threads with their outcomes, and, when asked, its payload.
import { inspect } from 'node:util'
import { PROBLEMS, unlistedTries } from '@sluice/contract'
import { type Acts, duration, type JobDetail } from '@sluice/operations'
import { html } from 'hono/html'
import { CONFIRMED } from './jobs.ts'
import {
  actForm,
  type Cell,
  copyable,
  count,
  discardForm,
  facts,
  moment,
  table,
  tenantLink,
  threadLink,
  traceLink,
} from './layout.ts'
import { type Html, isOperator, type Show, type Visit } from './page.ts'
import { reasonBlock, reasonLine } from './reason.ts'

/** Threads that the page lists. */
const THREADS = 100

/** Shows a job, and its payload if `acts` is present. Redirects to the look-up if no job has this id. */
export async function jobPage(visit: Visit, acts?: Acts): ReturnType<Show> {
  const id = String(visit.params.id)
  const job = await (acts?.revealJob ?? visit.view.readJob)(id)
  if (job === undefined) return `/find?q=${encodeURIComponent(id)}`
  const { hit } = job
  const { operation } = job.progress
  const { name = id, tenant, threads = 0, state, importId } = hit
  const isRevealed = acts !== undefined
  const about = {
    State: state,
    Thread: threads === 1 ? threadLink(tenant, name) : name,
    Job: copyable(id),
    Request: hit.requestId && copyable(hit.requestId),
    Import: importId && copyable(importId, html`<a href="/imports/${importId}">${importId}</a>`),
    Tenant: tenantLink(tenant),
    Key: hit.keyId && copyable(hit.keyId),
    Threads: threads,
    'Failed threads': state === 'failed' ? job.failedThreadCount : undefined,
    Lane: hit.lane,
    Tries: hit.attempts,
    'Last retry': operation && html`<a href="/operations#${operation}">${operation}</a>`,
    Trace: traceLink(visit.traceUrl, hit.traceId),
  }
  const body = html`<div id="job" data-refresh>${facts(about)}
${hit.reason && reasonBlock(hit.reason)}</div>
${isOperator(visit) && actsOf(visit, job, isRevealed)}
<div id="history" data-refresh>${historyOf(job, hit.reason)}
${job.threads && threadTable(tenant, job.threads)}</div>
${isRevealed && payloadOf(job)}`
  return { title: `${name} · ${state} job`, body }
}

/** What happened to a job, its failed threads, and the problem that its caller got. @param said as of `reasonLine` */
export function historyOf(job: JobDetail, said = ''): Html {
  const isFailed = job.hit.state === 'failed'
  const unlisted = isFailed ? unlistedTries({ attempts: job.hit.attempts ?? 0, tries: job.tries }) : 0
  return html`<h2>What happened</h2>${table('Timeline', ['When', 'What', 'By', 'Reason'], timelineOf(job, said))}
${unlisted > 0 && html`<p class="note">${count(unlisted, 'try is', 'tries are')} not listed: a worker died in it, or later ones took its place.</p>`}
${job.failedThreadCount > 0 && failedThreads(job, said)}
${
  isFailed &&
  html`<h2>What its caller got</h2>
<p><code>${PROBLEMS.job_failed.status} job_failed</code>: ${PROBLEMS.job_failed.title}. ${PROBLEMS.job_failed.meaning}</p>`
}`
}

type Event = { at: string | number | undefined; what: string; by?: string | undefined; reason?: string }

/** The events of a job in their order. Equal tries that follow each other are one row. */
function timelineOf({ hit, tries, fetchedAt, progress }: JobDetail, said: string): Cell[][] {
  const { acceptedAt, endedAt, state, worker, outcomes } = hit
  const stored = Object.entries(outcomes ?? {}).flatMap(([outcome, threads]) =>
    threads > 0 ? `${threads} ${outcome}` : [],
  )
  const events: Event[] = [
    { at: acceptedAt, what: 'accepted' },
    ...foldedTries(tries),
    { at: progress.waitingSince, what: 'went back to waiting' },
    { at: state === 'active' ? fetchedAt : undefined, what: 'fetched' },
    { at: endedAt, what: state === 'failed' ? 'failed for good' : ['stored', ...stored].join(', '), by: worker },
  ]
  const known = events.flatMap(({ at, ...event }) => (at === undefined ? [] : { ...event, ms: new Date(at).getTime() }))
  const ordered = known.sort((one, other) => one.ms - other.ms)
  return ordered.map(({ ms, what, by, reason }, index) => {
    const before = ordered[index - 1]
    const since = before && html` <span class="note">${duration(ms - before.ms)} later</span>`
    return [html`${moment(ms)}${since}`, what, by, reason && reasonLine(reason, said)]
  })
}

function foldedTries(tries: JobDetail['tries']): Event[] {
  const rows: (Event & { times: number })[] = []
  for (const { at, worker, reason, retriedBy } of tries) {
    const last = rows.at(-1)
    if (retriedBy !== undefined) rows.push({ at, what: 'retried by an operator', by: retriedBy, times: 0 })
    else if (last?.reason === reason && last.by === worker) Object.assign(last, { at, times: last.times + 1 })
    else rows.push({ at, what: '', by: worker, reason, times: 1 })
  }
  return rows.map(({ times, ...row }) => ({
    ...row,
    what: row.what || (times === 1 ? 'try failed' : `${times} tries failed alike`),
  }))
}

function actsOf(visit: Visit, job: JobDetail, isRevealed: boolean): Html {
  const { id, state, threads = 0 } = job.hit
  const isFailed = state === 'failed'
  const field = html`<input type="hidden" name="id" value="${id}">`
  return html`<div class="acts">${isFailed && actForm(visit, '/jobs/retry', html`${field}<button>Retry</button>`)}
${!isRevealed && job.threads && actForm(visit, `/jobs/${id}/reveal`, html`<button class="quiet">Reveal the payload</button>`)}
${isFailed && discardForm(visit, '/jobs/discard', { jobs: 1, threads: job.failedThreadCount || threads }, html`${field}${CONFIRMED}`)}</div>`
}

function threadTable(tenant: string, threads: NonNullable<JobDetail['threads']>): Html {
  const rows = threads.slice(0, THREADS).map(({ service, externalId, outcome }, at): Cell[] => {
    return [at + 1, threadLink(tenant, `${service}/${externalId}`), outcome ?? 'not yet']
  })
  return html`<h2>Threads</h2>${table('Threads', ['Place', 'Thread', 'Outcome'], rows)}
${threads.length > THREADS && html`<p class="note">${count(threads.length - THREADS, 'more thread')} are not listed.</p>`}`
}

function failedThreads({ hit, failedThreads: threads, failedThreadCount }: JobDetail, said: string): Html {
  const rows = threads.map(({ place, service, externalId, reason }): Cell[] => [
    place + 1,
    threadLink(hit.tenant, `${service}/${externalId}`),
    reasonLine(reason, said),
  ])
  return html`<h2>${count(failedThreadCount, 'thread')} could not be stored</h2>${table('Failed threads', ['Place', 'Thread', 'Reason'], rows)}
${failedThreadCount > threads.length && html`<p class="note">${failedThreadCount - threads.length} more are not listed.</p>`}`
}

/** How much of a payload is shown: enough to recognise its threads. No payload of ours has deeper levels. */
const SHOWN = { depth: 6, maxArrayLength: 10, maxStringLength: 300, compact: false }

function payloadOf({ payload }: JobDetail): Html {
  return html`<h2 id="payload">Payload</h2><pre tabindex="0" aria-labelledby="payload" role="region">${inspect(payload, SHOWN)}</pre>`
}
