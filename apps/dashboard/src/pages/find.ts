// The search box, and the page of its hits.
import { type FindQuery, FOUND_STATES, type Hit, parseFindQuery, SERVICES, type Searched } from '@sluice/contract'
import { asViewersSee, type Find } from '@sluice/queue'
import { html } from 'hono/html'
import { count, type Html, isOperator, moment, type Page, table, type Visit } from './layout.ts'

/** Searches of one process at a time. One of them scans Redis, the others wait for it. */
const SEARCHES_AT_ONCE = 4
/** A search ends after this time, and the page shows what was found. A million jobs take some four seconds. */
const SEARCH_MS = 20_000

/** Shows the search box. */
export async function findBox(visit: Visit): Promise<Page> {
  return { title: 'Find', body: findForm(visit, {}) }
}

/** Makes the page of a search. */
export function createFindPage(find: Find): (visit: Visit, gone: AbortSignal) => Promise<Page> {
  let searches = 0
  return async (visit, gone) => {
    const given = Object.fromEntries([...visit.query].filter(([, value]) => value.trim() !== ''))
    const parsed = parseFindQuery(given)
    const form = findForm(visit, given)
    const refused = !parsed.ok || (parsed.value.reason !== undefined && !isOperator(visit))
    if (refused || searches === SEARCHES_AT_ONCE) {
      const faults = parsed.ok ? [] : parsed.errors.map(({ pointer, message }) => `${pointer.slice(1)} ${message}`)
      const why = refused
        ? faults.join(' ') || 'A viewer searches no reasons.'
        : 'Other searches run: try again in a moment.'
      return {
        title: 'Find',
        body: html`${form}<p class="problem" role="alert">${why}</p>`,
        status: refused ? 400 : 503,
      }
    }
    searches += 1
    try {
      return { title: 'Find', body: html`${form}${await search(find, parsed.value, visit, gone)}` }
    } finally {
      searches -= 1
    }
  }
}

async function search(find: Find, query: FindQuery, visit: Visit, gone: AbortSignal): Promise<Html> {
  const hits: Hit[] = []
  const places = new Map<Searched['in'], Searched>()
  const late = AbortSignal.timeout(SEARCH_MS)
  let end = ''
  try {
    for await (const line of find(query, AbortSignal.any([gone, late]))) {
      if ('hit' in line) hits.push(isOperator(visit) ? line.hit : asViewersSee.hit(line.hit))
      else if ('searched' in line) places.set(line.searched.in, line.searched)
      else if ('end' in line && line.end.more) end = 'The search ended at its bound of hits.'
    }
  } catch (error) {
    if (!late.aborted) throw error
    end = `The search ended after ${SEARCH_MS / 1_000} s.`
  }
  const searched = [...places.values()]
  return html`<h2>${count(hits.length, 'hit')}</h2>
${hits.length > 0 && table('Hits', ['What', 'State', 'Tenant', 'When', 'Reason or outcome'], hits.map(hitRow))}
<p class="note">${end} Examined: ${searched.map(({ in: place, examined }) => `${place} ${examined.toLocaleString('en')}`).join(', ')}.
${searched.map(({ note }) => note && html`<br>${note}`)}</p>`
}

function hitRow({
  kind,
  id,
  name,
  quote,
  state,
  tenant,
  acceptedAt,
  endedAt,
  reason,
  outcomes,
  insertedBy,
  changedBy,
}: Hit): Html {
  const shown = quote === undefined ? (name ?? id) : `${name} · ${quote}`
  const to = kind === 'import' ? `/imports/${id}` : kind === 'job' && state === 'failed' ? `/jobs/${id}` : undefined
  const when = endedAt ?? acceptedAt
  const counts =
    outcomes &&
    Object.entries(outcomes)
      .map(([outcome, threads]) => `${threads} ${outcome}`)
      .join(', ')
  const writers = [insertedBy && `inserted by ${insertedBy}`, changedBy && `changed by ${changedBy}`]
    .filter(Boolean)
    .join(', ')
  return html`<tr><td>${to === undefined ? shown : html`<a href="${to}">${shown}</a>`}<div class="note">${kind} ${id}</div></td>
<td>${state ?? ''}</td><td>${tenant}</td><td>${when && moment(when)}</td><td><span class="reason">${reason ?? counts ?? writers}</span></td></tr>`
}

function findForm(visit: Visit, given: Readonly<Record<string, string>>): Html {
  return html`<form class="find" action="/find" role="search">
<p class="wide"><label for="q">An id, or an externalId; <code>C0123-*</code> for a beginning</label>
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
