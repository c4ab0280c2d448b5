// The search box, and the page of its hits.
import { type FindQuery, FOUND_STATES, type Hit, parseFindQuery, SERVICES, type Searched } from '@sluice/contract'
import { asViewersSee, type Find, QueueUnavailableError, SearchesFullError } from '@sluice/queue'
import { html, raw } from 'hono/html'
import { count, type Html, isOperator, moment, type Page, threadLink, type Visit } from './layout.ts'

/** A search ends after this time, and the page shows what was found. A million jobs take some four seconds. */
const SEARCH_MS = 20_000

/** Shows the search box. */
export async function findBox(visit: Visit): Promise<Page> {
  return { title: 'Find', body: findForm(visit, {}) }
}

export type Search = ReturnType<typeof createSearch>

/** Makes a search whose pieces are a table of hits, as they are found. @param traceUrl the address of a trace, with `{traceId}`. */
export function createSearch(find: Find, traceUrl: string | null) {
  async function* search(
    query: FindQuery,
    visit: Visit,
    gone: AbortSignal,
    onHit: (hit: Hit) => boolean,
  ): AsyncGenerator<Html> {
    const places = new Map<Searched['in'], Searched>()
    const late = AbortSignal.timeout(SEARCH_MS)
    let hits = 0
    const progress = (end = '') => {
      const searched = Array.from(
        places.values(),
        ({ in: place, examined }) => `${place} ${examined.toLocaleString('en')}`,
      )
      const notes = Array.from(places.values(), ({ note }) => note && html`<br>${note}`)
      return html`<tbody class="progress"><tr><td colspan="${HEADS.length}">${count(hits, 'hit')}. ${end} Examined: ${searched.join(', ')}.${notes}</td></tr></tbody>`
    }
    try {
      yield raw(TABLE)
      for await (const line of find(query, AbortSignal.any([gone, late]))) {
        if ('hit' in line && onHit(line.hit)) {
          hits += 1
          yield html`<tbody>${hitRow(isOperator(visit) ? line.hit : asViewersSee.hit(line.hit), traceUrl)}</tbody>`
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
    yield raw('</table></div>')
  }
  return search
}

/** Shows the search box with the hits of its query. */
export async function findPage(search: Search, visit: Visit, gone: AbortSignal): Promise<Page> {
  const given = Object.fromEntries([...visit.query].filter(([, value]) => value.trim() !== ''))
  const parsed = parseFindQuery(given)
  const form = findForm(visit, given)
  if (parsed.ok && (parsed.value.reason === undefined || isOperator(visit)))
    return { title: 'Find', body: form, rest: search(parsed.value, visit, gone, () => true) }
  const faults = parsed.ok ? [] : parsed.errors.map(({ pointer, message }) => `${pointer.slice(1)} ${message}`)
  const why = faults.join(' ') || 'A viewer searches no reasons.'
  return { title: 'Find', body: html`${form}<p class="problem" role="alert">${why}</p>`, status: 400 }
}

export const HEADS = ['What', 'State', 'Tenant', 'When', 'Reason or outcome']
const TABLE = `<div class="table" role="region" aria-label="Hits" tabindex="0"><table><thead><tr>${HEADS.map((head) => `<th scope="col">${head}</th>`).join('')}</tr></thead>`

/** A hit as a row of a table with these heads. */
export function hitRow(hit: Hit, traceUrl: string | null): Html {
  const { kind, id, name, quote, state, tenant, acceptedAt, endedAt, reason, outcomes, traceId } = hit
  const text = quote === undefined ? (name ?? id) : `${name} · ${quote}`
  const job = html`<a href="${kind === 'import' ? '/imports' : '/jobs'}/${id}">${kind} ${id}</a>`
  const isThread = name !== undefined && (kind !== 'job' || hit.threads === 1 || hit.place !== undefined)
  const when = endedAt ?? acceptedAt
  const took = endedAt && acceptedAt && `${(Date.parse(endedAt) - Date.parse(acceptedAt)).toLocaleString('en')} ms`
  const notes = [
    hit.attempts !== undefined && count(hit.attempts, 'try', 'tries'),
    state === 'completed' && took,
    hit.worker,
  ]
  const counts = Object.entries(outcomes ?? {}).flatMap(([outcome, threads]) =>
    threads > 0 ? `${threads} ${outcome}` : [],
  )
  const writers = [hit.insertedBy && `inserted by ${hit.insertedBy}`, hit.changedBy && `changed by ${hit.changedBy}`]
  const said = reason ?? [...counts, ...writers].filter(Boolean).join(', ')
  return html`<tr><td>${isThread ? threadLink(tenant, name, text) : text}<div class="note">${kind === 'job' || kind === 'import' ? job : `${kind} ${id}`}</div></td>
<td>${state ?? ''}</td><td>${tenant}</td><td>${when && moment(when)}<div class="note">${notes.filter(Boolean).join(', ')}</div></td>
<td><span class="reason">${said}</span>${traceId && traceUrl && html`<a href="${traceUrl.replace('{traceId}', traceId)}">Trace</a>`}</td></tr>`
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
