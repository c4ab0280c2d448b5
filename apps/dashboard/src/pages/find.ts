// The form for look-ups, and the page with their hits.
import { type FindAnswer, type Hit, parseFindQuery, SERVICES, summarize } from '@sluice/contract'
import { duration } from '@sluice/operations'
import { html } from 'hono/html'
import {
  age,
  type Cell,
  folded,
  type Html,
  inputOf,
  invalidPage,
  isOperator,
  type PageHandler,
  plural,
  reasonLine,
  shown,
  table,
  threadLink,
  timeTag,
  traceLink,
  type Visit,
} from './page.ts'

/** Shows the form for look-ups. */
export const findBox: PageHandler = async (visit) => ({
  title: 'Find',
  body: findForm(visit, {}, await tenantsOf(visit)),
})

/** Shows the form with the hits of its query. */
export const findPage: PageHandler = async (visit) => {
  const input = inputOf(visit.query)
  const parsed = parseFindQuery(Object.entries(input))
  const form = findForm(visit, input, await tenantsOf(visit))
  if (parsed.ok && (parsed.value.reason === undefined || isOperator(visit))) {
    const found = await visit.view.find(parsed.value, visit.gone)
    return { title: 'Find', body: html`${form}${hitsTable(found, visit.traceUrl)}` }
  }
  const errors = parsed.ok ? [{ message: 'A viewer looks up no reasons.' }] : parsed.errors
  return invalidPage('Find', errors, form)
}

/** Shows a table of hits, with their number, and what was not searched. */
export function hitsTable({ hits, more, notes }: FindAnswer, traceUrl: string | null): Html {
  const count = hits.length > 0 && `${plural(hits.length, 'hit')}.`
  const all = [count, more && `These are the first ${hits.length}: add filters.`, ...notes]
  const rows = hits.map((hit) => hitCells(hit, traceUrl))
  return html`${table('Hits', HIT_HEADS, rows, 'Nothing was found.')}
<p class="note">${all.filter(Boolean).join(' ')}</p>`
}

const HIT_HEADS = ['What', 'State', 'Tenant', 'When', 'Reason or outcome']

/**
 * Shows jobs of one state, a line for each, with a link to the job's page. Leaves out columns
 * without values.
 *
 * @param isOneReason whether all jobs have the same reason, which the page shows elsewhere.
 */
export function jobTable(
  label: string,
  jobs: readonly Hit[],
  { ifEmpty = 'No job.', maySelect = false, isOneReason = false } = {},
): Html {
  const rows = jobs.map(({ id, name = id, state = 'completed', ...hit }): Record<string, Cell> => {
    const { acceptedAt, endedAt, reason, outcomes } = hit
    const took =
      acceptedAt && endedAt && exactDuration(Date.parse(endedAt) - Date.parse(acceptedAt))
    const since = endedAt ?? acceptedAt
    // The number of threads stays in sight where a long name is cut.
    const [names, count] = name.split(/( \(\d+\))$/)
    return {
      Select:
        maySelect &&
        html`<input type="checkbox" name="id" value="${id}" aria-label="Select ${name}">`,
      State: dot(state),
      Job: html`<span class="name"><a href="/jobs/${id}" title="${name}, ${id}">${names}</a>${count}</span>`,
      Outcome: countsOf(outcomes).join(', '),
      Reason: reason && !isOneReason ? reasonLine(reason) : undefined,
      Tenant: hit.tenant,
      '#Attempts': hit.attempts,
      '#Age': since && age(since),
      '#Duration': took,
    }
  })
  const heads = Object.keys(rows[0] ?? {}).filter((head) =>
    rows.some((row) => row[head] || row[head] === 0),
  )
  const cells = rows.map((row) => heads.map((head) => row[head]))
  return html`<div class="jobs">${table(label, heads, cells, ifEmpty)}</div>`
}

/** Says how many threads were created, updated and unchanged. Leaves out zeros. */
export const countsOf = (outcomes: Hit['outcomes'] = { created: 0, updated: 0, unchanged: 0 }) =>
  Object.entries(outcomes).flatMap(([outcome, threads]) =>
    threads > 0 ? `${threads} ${outcome}` : [],
  )

/** Shows the state of a job as a coloured dot. */
function dot(state: string): Html {
  return html`<span class="dot ${state}" role="img" aria-label="${state}" title="${state}"></span>`
}

/** Shows how long something took, with ms or tenths of a second where `duration` has none. */
export const exactDuration = (ms: number) =>
  ms < 1_000 ? `${shown(ms)} ms` : ms < 9_950 ? `${(ms / 1_000).toFixed(1)} s` : duration(ms)

/**
 * Shows a hit as a row of a table whose heads are `HIT_HEADS`. The name is a link to the thread.
 */
export function hitCells(hit: Hit, traceUrl: string | null): Cell[] {
  const { kind, id, name, quote, state, tenant, acceptedAt, endedAt, reason, outcomes } = hit
  const text = quote === undefined ? (name ?? '') : `${name} · ${quote}`
  const isThread = name !== undefined && (kind !== 'job' || hit.threads === 1)
  const folder = { job: 'jobs', import: 'imports', source: undefined, quote: undefined }[kind]
  const ownId =
    folder === undefined
      ? `${kind} ${id}`
      : html`<a class="id" href="/${folder}/${id}">${kind} ${id}</a>`
  const when = endedAt ?? acceptedAt
  const took = endedAt && acceptedAt && exactDuration(Date.parse(endedAt) - Date.parse(acceptedAt))
  const notes = [
    hit.attempts !== undefined && plural(hit.attempts, 'attempt'),
    state === 'completed' && took,
    hit.worker,
    hit.keyId && `key ${hit.keyId}`,
  ]
  const writers = [
    hit.insertedBy && `inserted by ${hit.insertedBy}`,
    hit.changedBy && `changed by ${hit.changedBy}`,
  ]
  const what = reason
    ? reasonLine(reason)
    : [...countsOf(outcomes), ...writers].filter(Boolean).join(', ')
  return [
    html`${isThread ? threadLink(tenant, name, text) : text}<div class="note">${ownId}</div>`,
    state && html`${dot(state)}&nbsp;${state}`,
    tenant,
    html`${when && timeTag(when)}<div class="note">${notes.filter(Boolean).join(', ')}</div>`,
    html`${what} ${traceLink(traceUrl, hit.traceId)}`,
  ]
}

function findForm(visit: Visit, input: Readonly<Record<string, string>>, tenants: Html): Html {
  return html`<form class="find" action="/find" role="search">
<p class="wide"><label for="q">An id, or the externalId of a thread</label>
<input id="q" name="q" type="search" required maxlength="600" value="${input.q ?? ''}" autofocus></p>
${choice('service', 'Service', SERVICES, input.service)}
${tenantField(input.tenant)}${tenants}
${isOperator(visit) && html`<p><label for="reason">Reason</label><input id="reason" name="reason" value="${input.reason ?? ''}"></p>`}
<p><button>Find</button></p>
</form>`
}

/**
 * A field for a tenant. It proposes the tenants from `tenantsOf`, which must be on the same page.
 */
export function tenantField(tenant = ''): Html {
  return html`<p><label for="tenant">Tenant</label><input id="tenant" name="tenant" list="tenants" value="${tenant}"></p>`
}

/**
 * Lists the tenants that the field proposes: those in the queue, and those that were refused in the
 * last hour.
 */
export async function tenantsOf({ view }: Visit): Promise<Html> {
  const { tenants } = summarize(await view.readLately())
  return html`<datalist id="tenants">${tenants.map(({ tenant }) => html`<option value="${tenant}"></option>`)}</datalist>`
}

/** The form for a page's filters. */
export function filters(action: string, isOpen: boolean, fields: Html): Html {
  const form = html`<form class="find" action="${action}">${fields}<p><button>Filter</button></p></form>`
  return folded('Filters', form, isOpen)
}

/** A list from which people choose the value of a filter. */
export function choice(
  name: string,
  label: string,
  values: readonly string[],
  chosen?: string,
): Html {
  const options = values.map(
    (value) => html`<option${value === chosen ? html` selected` : ''}>${value}</option>`,
  )
  return html`<p><label for="${name}">${label}</label><select id="${name}" name="${name}"><option value="">any</option>${options}</select></p>`
}
