// The search box, the page of its hits, and the page of the jobs that completed or failed last.
import type { FailedJobPage, FindQuery, Hit, Searched } from '@sluice/contract'
import { FOUND_STATES, parseFindQuery, SERVICES } from '@sluice/contract'
import { SearchesFullError } from '@sluice/operations'
import { QueueUnavailableError } from '@sluice/queue'
import { html } from 'hono/html'
import type { Cell } from './layout.ts'
import { count, moment, shown, TABLE_END, table, tableBegin, tableRow, threadLink, traceLink } from './layout.ts'
import { type Html, isOperator, type Show, type Visit } from './page.ts'

/** A search ends after this time, and the page shows what was found. A million jobs take some four seconds. */
const SEARCH_MS = 20_000

/** Shows the search box. */
export const findBox: Show = async (visit) => ({ title: 'Find', body: findForm(visit, {}) })

/** Searches, and yields the pieces of a table of hits as they are found. @param isWanted which hits the table has */
export async function* search(
  query: FindQuery,
  { view, gone, traceUrl }: Visit,
  isWanted = (_: Hit) => true,
): AsyncGenerator<Html> {
  const places = new Map<Searched['in'], Searched>()
  const late = AbortSignal.timeout(SEARCH_MS)
  let hits = 0
  const progress = (end = '') => {
    const searched = Array.from(places.values(), ({ in: place, examined }) => `${place} ${shown(examined)}`)
    const notes = Array.from(places.values(), ({ note }) => note && html`<br>${note}`)
    return html`<tbody class="progress"><tr><td colspan="${HEADS.length}">${count(hits, 'hit')}. ${end} Examined: ${searched.join(', ')}.${notes}</td></tr></tbody>`
  }
  try {
    yield tableBegin('Hits', HEADS)
    for await (const line of view.find(query, AbortSignal.any([gone, late]))) {
      if ('hit' in line && isWanted(line.hit)) {
        hits += 1
        yield html`<tbody>${tableRow(HEADS, hitCells(line.hit, traceUrl))}</tbody>`
      } else if ('searched' in line) {
        places.set(line.searched.in, line.searched)
        yield progress()
      } else if ('end' in line && line.end.more) yield progress('The search ended at its bound of hits.')
    }
  } catch (error) {
    if (gone.aborted) return
    if (late.aborted) yield progress(`The search ended after ${SEARCH_MS / 1_000} s.`)
    else if (error instanceof SearchesFullError) yield progress('Other searches run: try again in a moment.')
    else if (error instanceof QueueUnavailableError) yield progress('Redis cannot be reached.')
    else throw error
  }
  yield TABLE_END
}

/** Shows the search box with the hits of its query. */
export const findPage: Show = async (visit) => {
  const given = Object.fromEntries([...visit.query].filter(([, value]) => value.trim() !== ''))
  const parsed = parseFindQuery(Object.entries(given))
  const form = findForm(visit, given)
  if (parsed.ok && (parsed.value.reason === undefined || isOperator(visit)))
    return { title: 'Find', body: form, rest: search(parsed.value, visit) }
  const faults = parsed.ok ? [] : parsed.errors.map(({ pointer, message }) => `${pointer.slice(1)} ${message}`)
  const why = faults.join(' ') || 'A viewer searches no reasons.'
  return { title: 'Find', body: html`${form}<p class="problem" role="alert">${why}</p>`, status: 400 }
}

/** The number of jobs on the page of recent jobs. */
const SHOWN = 50

/** Shows the jobs that completed or failed last. */
export const recentPage: Show = async ({ view, traceUrl }) => {
  const [completed, failed] = await Promise.all([view.listRecent({}), view.listFailed({ filter: {}, limit: SHOWN })])
  const ended = [...completed.jobs, ...failed.jobs.map(failedHit)].sort((one, other) => endOf(other) - endOf(one))
  const rows = ended.slice(0, SHOWN).map((hit) => hitCells(hit, traceUrl))
  const body = html`<div id="recent" data-refresh>${table('Recent jobs', HEADS, rows, 'No job has ended.')}</div>`
  return { title: 'Recent jobs', body }
}

function failedHit({ enqueuedAt, failedAt, reasonGroup: _, ...job }: FailedJobPage['jobs'][number]): Hit {
  return { kind: 'job', state: 'failed', ...job, acceptedAt: enqueuedAt, endedAt: failedAt }
}

const endOf = ({ endedAt = '' }: Hit) => Date.parse(endedAt)

const HEADS = ['What', 'State', 'Tenant', 'When', 'Reason or outcome']

/** A hit as a row of a table with the heads `HEADS`. */
export function hitCells(hit: Hit, traceUrl: string | null): Cell[] {
  const { kind, id, name, quote, state, tenant, acceptedAt, endedAt, reason, outcomes } = hit
  const text = quote === undefined ? (name ?? id) : `${name} · ${quote}`
  const isThread = name !== undefined && (kind !== 'job' || hit.threads === 1 || hit.place !== undefined)
  const folder = { job: 'jobs', import: 'imports', source: undefined, quote: undefined }[kind]
  const ownId = folder === undefined ? `${kind} ${id}` : html`<a href="/${folder}/${id}">${kind} ${id}</a>`
  const when = endedAt ?? acceptedAt
  const took = endedAt && acceptedAt && `${shown(Date.parse(endedAt) - Date.parse(acceptedAt))} ms`
  const notes = [
    hit.attempts !== undefined && count(hit.attempts, 'try', 'tries'),
    state === 'completed' && took,
    hit.worker,
  ]
  const counts = Object.entries(outcomes ?? {}).map(([outcome, threads]) => threads > 0 && `${threads} ${outcome}`)
  const writers = [hit.insertedBy && `inserted by ${hit.insertedBy}`, hit.changedBy && `changed by ${hit.changedBy}`]
  return [
    html`${isThread ? threadLink(tenant, name, text) : text}<div class="note">${ownId}</div>`,
    state,
    tenant,
    html`${when && moment(when)}<div class="note">${notes.filter(Boolean).join(', ')}</div>`,
    html`<span class="reason">${reason ?? [...counts, ...writers].filter(Boolean).join(', ')}</span>${traceLink(traceUrl, hit.traceId)}`,
  ]
}

function findForm(visit: Visit, given: Readonly<Record<string, string>>): Html {
  return html`<form class="find" action="/find" role="search">
<p class="wide"><label for="q">An id, or an externalId; <code>C0123-*</code> for jobs with such a beginning</label>
<input id="q" name="q" type="search" required maxlength="600" value="${given.q ?? ''}" autofocus></p>
${choice('state', 'State', FOUND_STATES, given.state)}
${choice('service', 'Service', SERVICES, given.service)}
<p><label for="tenant">Tenant</label><input id="tenant" name="tenant" value="${given.tenant ?? ''}"></p>
${isOperator(visit) && html`<p><label for="reason">Reason</label><input id="reason" name="reason" value="${given.reason ?? ''}"></p>`}
<p><button>Find</button></p>
</form>`
}

function choice(name: string, label: string, values: readonly string[], given?: string): Html {
  const options = values.map((value) => html`<option${value === given ? html` selected` : ''}>${value}</option>`)
  return html`<p><label for="${name}">${label}</label><select id="${name}" name="${name}"><option value="">any</option>${options}</select></p>`
}
