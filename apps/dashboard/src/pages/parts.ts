// The parts that pages are built of: times, numbers, ids, links, tables and reasons of failures.
import { duration, reasonWords, SHOWN_REASON, shown } from '@sluice/operations'
import { html } from 'hono/html'

export { megabytes, shown } from '@sluice/operations'

/** A piece of HTML. Any other value in a template is escaped. */
export type Html = ReturnType<typeof html>

/**
 * Shows a moment in UTC, and how long ago it was. In a browser, page.js shows it in the browser's
 * zone.
 */
export function timeTag(time: string | number): Html {
  const at = new Date(time)
  const text = at.toISOString().replace('T', ' ').slice(0, 19)
  return html`<time datetime="${at.toISOString()}">${text} UTC</time> <span class="ago">(${duration(Date.now() - at.getTime())} ago)</span>`
}

/** Shows how long ago a moment was. The moment itself appears under the pointer. */
export function age(time: string): Html {
  const text = time.replace('T', ' ').slice(0, 19)
  return html`<time class="age" datetime="${time}" title="${text} UTC">${duration(Date.now() - Date.parse(time))}</time>`
}

/**
 * Shows an id in one line, with a button that copies it. Without the page's script, there is no
 * button.
 */
export function copyable(id: string, shown: Html | string = id): Html {
  return html`<span class="id">${shown}<button type="button" class="copy" data-copy="${id}" hidden>Copy</button></span>`
}

/**
 * Returns when a job was accepted or an import began, because the id begins with the time (UUIDv7,
 * RFC 9562).
 */
export function beginOf(id: string): string {
  return new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString()
}

/**
 * Links to the page of a thread.
 * @param name `service/externalId`.
 */
export function threadLink(tenant: string, name: string, text = name): Html {
  const service = name.split('/', 1).join()
  const query = new URLSearchParams({ tenant, service, externalId: name.slice(service.length + 1) })
  return html`<a href="/thread?${query}">${text}</a>`
}

/** Links to the page of a tenant. */
export function tenantLink(tenant: string): Html {
  return html`<a href="/tenants/${encodeURIComponent(tenant)}">${tenant}</a>`
}

/**
 * Links to a trace.
 * @param traceUrl the address of traces, with the placeholder `{traceId}`. Null if there is none.
 */
export function traceLink(traceUrl: string | null, traceId: string | undefined): Html | '' {
  return traceUrl && traceId
    ? html`<a href="${traceUrl.replace('{traceId}', traceId)}">Trace</a>`
    : ''
}

export function plural(number: number, noun: string, plural = `${noun}s`): string {
  return `${shown(number)} ${number === 1 ? noun : plural}`
}

export function progress(label: string, done: number, total = 1): Html {
  return html`<progress max="${Math.max(total, 1)}" value="${done}" aria-label="${label}"></progress>`
}

/** A cell of a table. A number gets separators. `false` and undefined make an empty cell. */
export type Cell = Html | readonly Html[] | string | number | false | undefined

/**
 * Makes a table that scrolls sideways by itself, also by the keyboard. A head that begins with #
 * marks a column of numbers.
 *
 * @param ifEmpty is shown if the table has no rows.
 */
export function table(
  label: string,
  heads: readonly string[],
  rows: readonly (readonly Cell[])[],
  ifEmpty?: string,
): Html {
  if (rows.length === 0 && ifEmpty !== undefined) return html`<p>${ifEmpty}</p>`
  const text = (cell: Cell) => (typeof cell === 'number' ? shown(cell) : cell)
  // On a phone, each row is a list, in which each value stands behind the name of its column.
  const name = (head = '') => head.replace('#', '')
  const cellOf = (cell: Cell, at: number) =>
    html`<td data-head="${name(heads[at])}"${numberClass(heads[at])}>${text(cell)}</td>`
  return html`<div class="table" role="region" aria-label="${label}" tabindex="0"><table>
<thead><tr>${heads.map((head) => html`<th scope="col"${numberClass(head)}>${name(head)}</th>`)}</tr></thead>
<tbody>${rows.map((cells) => html`<tr>${cells.map(cellOf)}</tr>`)}</tbody></table></div>`
}

const numberClass = (head = '') => head.startsWith('#') && html` class="number"`

/** Shows names with their values. Leaves out absent values. */
export function facts(entries: Readonly<Record<string, Html | string | number | undefined>>): Html {
  const shown = Object.entries(entries).filter(([, value]) => value !== undefined && value !== '')
  return html`<dl>${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

/**
 * Recorded attempts and threads have only the beginning of their reason. This number of characters
 * identifies it.
 */
const BEGINNING = 200

/**
 * Shows a reason in a list, in at most two lines. The whole reason appears under the pointer.
 * @param said what the page already says.
 */
export function reasonLine(reason: string, said = ''): Html {
  const words = reasonWords(reason)
  if (said !== '' && reasonWords(said).startsWith(words.slice(0, BEGINNING))) return html`as above`
  return html`<span class="reason" title="${words.slice(0, SHOWN_REASON)}">${withCode(words)}</span>`
}

/** Shows the reason on the page of a job or a group, with the recorded text. */
export function reasonBlock(reason: string): Html {
  const words = reasonWords(reason)
  return html`<div class="problem">${withCode(words)}${words !== reason && rawReason(reason)}</div>`
}

/** Shows the recorded text of a reason. */
export function rawReason(reason: string): Html {
  return html`<details><summary class="note">As it was recorded</summary><p class="raw">${reason.slice(0, SHOWN_REASON)}</p></details>`
}

/** Converts text in backticks to code. */
export function withCode(words: string): Html {
  const parts = words.slice(0, SHOWN_REASON).split('`')
  return html`${parts.map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part))}`
}
