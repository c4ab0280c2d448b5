// The page of a failed job: its tries, its failed threads, the problem for its caller and, when asked, its payload.
import { inspect } from 'node:util'
import { type FailedJob, PROBLEMS, unlistedTries } from '@sluice/contract'
import type { Acts } from '@sluice/operations'
import { html } from 'hono/html'
import { actForm, type Cell, count, discardForm, facts, moment, table, threadLink, traceLink } from './layout.ts'
import { type Html, isOperator, type Show, type Visit } from './page.ts'

/** Shows a failed job. For any other id, leads to the look-up of it. @param acts if present, shows its payload. */
export async function jobPage(visit: Visit, acts?: Acts): ReturnType<Show> {
  const id = String(visit.params.id)
  const found = await (acts?.revealJob ?? visit.view.findJob)(id)
  if (found === undefined) return `/find?q=${encodeURIComponent(id)}`
  const { job, traceId } = found
  const isRevealed = acts !== undefined
  const about = {
    Thread: job.threads === 1 ? threadLink(job.tenant, job.name) : job.name,
    Job: job.id,
    Tenant: job.tenant,
    Threads: job.threads,
    'Failed threads': job.failedThreadCount,
    Lane: job.lane,
    Tries: job.attempts,
    Accepted: moment(job.enqueuedAt),
    'Failed for good': moment(job.failedAt),
    Trace: traceLink(visit.traceUrl, traceId),
  }
  const body = html`${facts(about)}
<p class="problem reason">${job.reason}</p>
${isOperator(visit) && actsOf(visit, job, isRevealed)}
${historyOf(job)}
${isRevealed && html`<h2 id="payload">Payload</h2><pre tabindex="0" aria-labelledby="payload" role="region">${inspect(job.payload, SHOWN)}</pre>`}`
  return { title: 'Failed job', body }
}

/** The tries of a failed job, its failed threads, and the problem that its caller got. */
export function historyOf(job: FailedJob): Html {
  const rows = job.tries.map(({ at, worker, reason, retriedBy }): Cell[] => {
    return [moment(at), worker, quoted(retriedBy === undefined ? reason : `Retried by ${retriedBy}`)]
  })
  return html`<h2>Tries</h2>${table('Tries', ['Ended', 'Worker', 'Reason'], rows)}
${unlistedTries(job) > 0 && html`<p class="note">${count(unlistedTries(job), 'try is', 'tries are')} not listed: a worker died in it, or later ones took its place.</p>`}
${job.failedThreads.length > 0 && failedThreads(job)}
<h2>What its caller got</h2>
<p><code>${PROBLEMS.job_failed.status} job_failed</code>: ${PROBLEMS.job_failed.title}. ${PROBLEMS.job_failed.meaning}</p>`
}

function actsOf(visit: Visit, { id, failedThreadCount }: FailedJob, isRevealed: boolean): Html {
  return html`<div class="acts">${actForm(visit, `/jobs/${id}/retry`, html`<button>Retry</button>`)}
${!isRevealed && actForm(visit, `/jobs/${id}/reveal`, html`<button class="quiet">Reveal the payload</button>`)}
${discardForm(visit, `/jobs/${id}/discard`, { jobs: 1, threads: failedThreadCount })}</div>`
}

function failedThreads({ tenant, failedThreads: threads, failedThreadCount }: FailedJob): Html {
  const rows = threads.map(({ place, service, externalId, reason }): Cell[] => [
    place + 1,
    threadLink(tenant, `${service}/${externalId}`),
    quoted(reason),
  ])
  return html`<h2>${count(failedThreadCount, 'thread')} could not be stored</h2>${table('Failed threads', ['Place', 'Thread', 'Reason'], rows)}
${failedThreadCount > threads.length && html`<p class="note">${failedThreadCount - threads.length} more are not listed.</p>`}`
}

/** How much of a payload is shown: enough to recognise its threads. No payload of ours has deeper levels. */
const SHOWN = { depth: 6, maxArrayLength: 10, maxStringLength: 300, compact: false }

const quoted = (reason: string) => html`<span class="reason">${reason}</span>`
