// The form for look-ups, and the page of their hits.
import type { Found, Hit } from '@sluice/contract'
import { parseFindQuery, SERVICES } from '@sluice/contract'
import { html } from 'hono/html'
import { type Cell, count, moment, shown, table, threadLink, traceLink } from './layout.ts'
import { faultPage, type Html, inputOf, isOperator, type Show, type Visit } from './page.ts'

/** Shows the form for look-ups. */
export const findBox: Show = async (visit) => ({ title: 'Find', body: findForm(visit, {}) })

/** Shows the form with the hits of its query. */
export const findPage: Show = async (visit) => {
  const input = inputOf(visit.query)
  const parsed = parseFindQuery(Object.entries(input))
  const form = findForm(visit, input)
  if (parsed.ok && (parsed.value.reason === undefined || isOperator(visit))) {
    const found = await visit.view.find(parsed.value, visit.gone)
    return { title: 'Find', body: html`${form}${hitsTable(found, visit.traceUrl)}` }
  }
  const faults = parsed.ok ? [{ pointer: '', message: 'A viewer looks up no reasons.' }] : parsed.errors
  return faultPage('Find', faults, form)
}

/** A table of hits, with their number and what was not looked up. */
export function hitsTable({ hits, more, notes }: Found, traceUrl: string | null): Html {
  const all = [...(more ? [`These are the first ${hits.length}: add filters.`] : []), ...notes]
  const rows = hits.map((hit) => hitCells(hit, traceUrl))
  return html`${table('Hits', HIT_HEADS, rows)}
<p class="note">${count(hits.length, 'hit')}. ${all.join(' ')}</p>`
}

const HIT_HEADS = ['What', 'State', 'Tenant', 'When', 'Reason or outcome']

/** A table of jobs, each with a link to its page. @param maySelect each job has a box to select it. */
export function jobTable(
  label: string,
  jobs: readonly Hit[],
  { traceUrl }: Pick<Visit, 'traceUrl'>,
  { ifEmpty = 'No job.', maySelect = false } = {},
): Html {
  const rows = jobs.map((hit): Cell[] => {
    const box = html`<input type="checkbox" name="id" value="${hit.id}" aria-label="Select ${hit.name}">`
    return [...(maySelect ? [box] : []), ...hitCells(hit, traceUrl, true)]
  })
  return table(label, [...(maySelect ? ['Selected'] : []), ...HIT_HEADS], rows, ifEmpty)
}

/** A hit as a row of a table with the heads `HIT_HEADS`. Its name leads to its thread; in a list of jobs, to the job. */
export function hitCells(hit: Hit, traceUrl: string | null, isJobList = false): Cell[] {
  const { kind, id, name, quote, state, tenant, acceptedAt, endedAt, reason, outcomes } = hit
  const text = quote === undefined ? (name ?? id) : `${name} · ${quote}`
  const isThread = name !== undefined && (kind !== 'job' || hit.threads === 1)
  const folder = { job: 'jobs', import: 'imports', source: undefined, quote: undefined }[kind]
  const ownId = folder === undefined ? `${kind} ${id}` : html`<a class="id" href="/${folder}/${id}">${kind} ${id}</a>`
  const when = endedAt ?? acceptedAt
  const took = endedAt && acceptedAt && `${shown(Date.parse(endedAt) - Date.parse(acceptedAt))} ms`
  const notes = [
    hit.attempts !== undefined && count(hit.attempts, 'try', 'tries'),
    state === 'completed' && took,
    hit.worker,
    hit.keyId && `key ${hit.keyId}`,
  ]
  const counts = Object.entries(outcomes ?? {}).map(([outcome, threads]) => threads > 0 && `${threads} ${outcome}`)
  const writers = [hit.insertedBy && `inserted by ${hit.insertedBy}`, hit.changedBy && `changed by ${hit.changedBy}`]
  const what = reason ?? [...counts, ...writers].filter(Boolean).join(', ')
  return [
    isJobList
      ? html`<a href="/jobs/${id}">${text}</a><div class="note id">${id}</div>`
      : html`${isThread ? threadLink(tenant, name, text) : text}<div class="note">${ownId}</div>`,
    state,
    tenant,
    html`${when && moment(when)}<div class="note">${notes.filter(Boolean).join(', ')}</div>`,
    html`${what && html`<span class="reason">${what}</span>`}${traceLink(traceUrl, hit.traceId)}`,
  ]
}

function findForm(visit: Visit, input: Readonly<Record<string, string>>): Html {
  return html`<form class="find" action="/find" role="search">
<p class="wide"><label for="q">An id, or the externalId of a thread</label>
<input id="q" name="q" type="search" required maxlength="600" value="${input.q ?? ''}" autofocus></p>
${choice('service', 'Service', SERVICES, input.service)}
<p><label for="tenant">Tenant</label><input id="tenant" name="tenant" value="${input.tenant ?? ''}"></p>
${isOperator(visit) && html`<p><label for="reason">Reason</label><input id="reason" name="reason" value="${input.reason ?? ''}"></p>`}
<p><button>Find</button></p>
</form>`
}

/** A list to choose a filter from. */
export function choice(name: string, label: string, values: readonly string[], chosen?: string): Html {
  const options = values.map((value) => html`<option${value === chosen ? html` selected` : ''}>${value}</option>`)
  return html`<p><label for="${name}">${label}</label><select id="${name}" name="${name}"><option value="">any</option>${options}</select></p>`
}
