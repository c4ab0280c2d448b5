// What the pages of the dashboard are built of: the input and result of a page's handler, its
// frame, the verdict that the frame shows, forms, and parts: times, numbers, ids, links, tables and
// reasons of failures.
import type { Finding, Status, ValidationError } from '@sluice/contract'
import type { Visitor } from '@sluice/credentials/sessions'
import { duration, reasonWords, SHOWN_REASON, shown, type View } from '@sluice/operations'
import type { Logger } from '@sluice/process'
import { html } from 'hono/html'

export { megabytes, shown } from '@sluice/operations'

/** A person who is logged in. */
export interface Session {
  visitor: Visitor
  /** A token that each form sends if it changes something, and that no other site knows. */
  csrf: string
}

/** A person's request for a page or an act. */
export interface Visit extends Session {
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  body: unknown
  /** What the person may see and do. */
  view: View
  /** The address of traces, with the placeholder `{traceId}`. */
  traceUrl: string | null
  log: Pick<Logger, 'info'>
  /** Aborts when nobody waits for the page any more. */
  gone: AbortSignal
}

export interface Page {
  title: string
  /** The pages above this one, the outermost first. */
  trail?: readonly Html[]
  body: Html
  status?: number
  /**
   * The status whose verdict the frame shows. A page that reads the status itself returns it, so
   * that both agree.
   */
  shows?: Status | undefined
}

/** Returns a page, the path to redirect to, or undefined if the address has no page. */
export type PageHandler = (visit: Visit) => Promise<Page | string | undefined>

/** Returns the parameters of a query that are not blank, because a form sends all of its fields. */
export function inputOf(query: URLSearchParams): Record<string, string> {
  return Object.fromEntries([...query].filter(([, value]) => value.trim() !== ''))
}

/** Makes the page for an invalid query: the form, and below it what is wrong. */
export function invalidPage(
  title: string,
  errors: readonly Pick<ValidationError, 'message'>[],
  form: Html,
): Page {
  const why = errors.map(({ message }) => message).join(' ')
  return { title, body: html`${form}<p class="problem" role="alert">${why}</p>`, status: 400 }
}

export function isOperator({ visitor }: Session): boolean {
  return visitor.role === 'operator'
}

const NAVIGATION = Object.entries({
  Find: '/',
  Overview: '/overview',
  Jobs: '/jobs',
  Failures: '/failures',
  Imports: '/imports',
  Operations: '/operations',
})

/**
 * Builds a whole page. Without a session, it has no navigation and no verdict.
 * @param path marks the page's place in the navigation.
 */
export async function renderPage(
  { title, trail, body, shows }: Page,
  session?: Session,
  path = '',
): Promise<string> {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Sluice</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/page.css">
<script src="/assets/page.js" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<a class="brand" href="/">Sluice</a>
${session && navigation(session, path, shows)}
</header>
${session && shows && verdictOf(shows, session, path)}
<main id="main" tabindex="-1">
<p id="stale" class="problem" role="alert" hidden>This page could not be refreshed. It tries again every few seconds.</p>
${trail && html`<nav class="trail" aria-label="Breadcrumbs"><ol>${trail.map((one) => html`<li>${one}</li>`)}</ol></nav>`}
<h1>${title}</h1>
${body}
</main>
${session && html`<footer>Updated <span id="updated">now</span></footer>`}
</body>
</html>
`
  return String(await page)
}

function navigation(session: Session, path: string, status?: Status): Html {
  const failed = (status?.queued ?? []).reduce(
    (sum, { state, threads }) => sum + (state === 'failed' ? threads : 0),
    0,
  )
  // The page Find has a larger search field.
  const isFind = path === '/' || path === '/find'
  const links = NAVIGATION.map(([name, to]) => {
    const isHere = to === '/' ? isFind : path.startsWith(to)
    const badge =
      to === '/failures' && failed > 0 && html` <span class="badge">${shown(failed)}</span>`
    return html`<a href="${to}"${isHere && html` aria-current="page"`}>${name}${badge}</a>`
  })
  const search = html`<form action="/find" role="search"><input id="q" name="q" type="search" required maxlength="600" placeholder="Find a job or a thread" aria-label="Find a job or a thread"><kbd aria-hidden="true">/</kbd></form>`
  const { by, role } = session.visitor
  return html`<nav aria-label="Pages">${links}${isOperator(session) && html`<a href="/board">Bull Board</a>`}</nav>
${!isFind && search}${actForm(session, '/logout', html`<span class="who">${role} ${by}</span> <button class="quiet">Log out</button>`)}`
}

const MORE_WORKERS = 'If all workers are busy, start more.'

/** The next step, unless the finding itself says it. */
const NEXT: Readonly<Partial<Record<Finding['code'], string>>> = {
  other_store: 'Correct its MONGODB_URL or its QUEUE.',
  store_away: 'Nothing is lost. Bring MongoDB back, and the jobs go on by themselves.',
  store_unstable: 'Check the network between workers and MongoDB.',
  store_slow: 'Look for slow operations, and at the disk of MongoDB.',
  store_unfit: 'Give its user the rights that docs/operate/mongodb.md lists.',
  process_missing: 'Start one.',
  crash_loop: 'The last line of its log says why it died.',
  process_gone: 'Start another one. The end of its log says why it died.',
  process_stuck: 'Look at the thread, and at the log of the worker.',
  redis_full: 'Raise maxmemory, or start more workers.',
  redis_replicas: 'Bring the replicas back.',
  redis_clock: 'Synchronize the clocks (NTP).',
  callers_time_out: MORE_WORKERS,
  requests_refused: 'docs/operate/failures.md says what each reason asks for.',
  queue_full: 'Resume lanes that are paused, or start more workers.',
  lane_paused: 'Jobs wait until it is resumed.',
  jobs_old: MORE_WORKERS,
  versions_differ: 'Finish the rollout, or roll it back.',
  completions_refused: 'The error comes from Redis. Repair it, and the jobs continue.',
  threads_failing: 'Fix the cause, then retry them.',
  failed_threads: 'Fix the cause, then retry them.',
  key_revoked: 'Give its caller another key.',
}

/** The text of a link to a page, by the beginning of the page's path. */
const LABELS = Object.entries({
  '/overview#processes': 'Show the processes',
  '/overview#tenants': 'Show the tenants',
  '/overview': 'Show the overview',
  '/processes/': 'Show the process',
  '/tenants/': 'Show the tenant',
  '/jobs': 'Show the jobs',
})

/**
 * At most this number of findings with the same code is shown. The others are behind a disclosure.
 */
const SHOWN_ALIKE = 2

/**
 * Shows what is wrong, the worst first, or that all is well.
 * @param path the path of the page.
 */
export function verdictOf(status: Status, session: Session, path: string): Html {
  const { verdict = [] } = status
  const isWell = verdict.every(({ level }) => level === 'note')
  const tone = !isWell ? 'problem' : verdict.length > 0 ? 'note' : 'well'
  const items = [...Map.groupBy(verdict, ({ code }) => code).values()].map((alike) => {
    const lines = alike.map(
      (one) => html`<li data-level="${one.level}">${findingLine(one, status, session, path)}</li>`,
    )
    const others = lines.slice(SHOWN_ALIKE)
    const more = html`<li><details><summary class="note">${others.length} more like this</summary><ul>${others}</ul></details></li>`
    return html`${lines.slice(0, SHOWN_ALIKE)}${others.length > 0 && more}`
  })
  return html`<section id="verdict" data-level="${tone}" aria-label="Verdict" data-refresh>${isWell && html`<p>All is well${items.length > 0 && ', except:'}</p>`}${items.length > 0 && html`<ul>${items}</ul>`}</section>`
}

function findingLine(
  { code, text, page }: Finding,
  status: Status,
  session: Session,
  path: string,
) {
  const { queued, verdict = [] } = status
  // Another finding says what comes first: MongoDB, or any worker at all.
  const isMissing = verdict.some(({ code }) => ['store_away', 'process_missing'].includes(code))
  const next = isMissing && NEXT[code] === MORE_WORKERS ? undefined : NEXT[code]
  const failed = queued.reduce(
    (sum, { state, threads, jobs }) => sum + (state === 'failed' ? threads || jobs : 0),
    0,
  )
  const [, label] = LABELS.find(([begin]) => page.startsWith(begin)) ?? []
  const name = label ?? `Show ${plural(failed, 'failure')}`
  const link = page !== path && html` <a class="button quiet" href="${page}">${name}</a>`
  const lane =
    code === 'lane_paused' &&
    isOperator(session) &&
    new URLSearchParams(page.split('?')[1]).get('lane')
  const resume =
    lane && actForm(session, `/lanes/${lane}/resume`, html`<button>Resume ${lane}</button>`)
  return html`<span>${text}.${next && html` <span class="note">${next}</span>`}</span>${link}${resume}`
}

/** Makes a form that changes something. It contains the token against forged requests. */
export function actForm({ csrf }: Session, action: string, content: Html): Html {
  return html`<form method="post" action="${action}"><input type="hidden" name="csrf" value="${csrf}">${content}</form>`
}

/** Makes a form that discards failed jobs. It first leads to a question that says how many. */
export function discardForm(
  session: Session,
  action: string,
  { jobs, threads }: Record<'jobs' | 'threads', number>,
  fields: Html | '' = '',
): Html {
  const discard = html`${fields}<button class="danger">Discard ${plural(jobs, 'job')}</button>`
  return html`<details><summary class="button danger">Discard …</summary>
<p class="problem">This removes ${plural(jobs, 'job')} for good. ${plural(threads, 'thread')} that could not be stored ${threads === 1 ? 'is' : 'are'} lost.</p>
${actForm(session, action, discard)}</details>`
}

/** A piece of HTML. Any other value in a template is escaped. */
export type Html = ReturnType<typeof html>

/**
 * Shows a moment in UTC, and how long ago it was unless it is to come. In a browser, page.js shows
 * it in the browser's zone.
 */
export function timeTag(time: string | number): Html {
  const at = new Date(time)
  const text = at.toISOString().replace('T', ' ').slice(0, 19)
  const ms = Date.now() - at.getTime()
  return html`<time datetime="${at.toISOString()}">${text} UTC</time>${ms >= 0 && html` <span class="ago">(${duration(ms)} ago)</span>`}`
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
  if (rows.length === 0 && ifEmpty !== undefined) return html`<p class="panel note">${ifEmpty}</p>`
  const text = (cell: Cell) => (typeof cell === 'number' ? shown(cell) : cell)
  // On a small screen, each row is a card: most values stand behind the names of their columns.
  const name = (head = '') => head.replace('#', '')
  const cellOf = (cell: Cell, at: number) =>
    html`<td data-head="${name(heads[at])}"${numberClass(heads[at])}>${text(cell)}</td>`
  return html`<div class="table" role="region" aria-label="${label}" tabindex="0"><table>
<thead><tr>${heads.map((head) => html`<th scope="col"${numberClass(head)}>${name(head)}</th>`)}</tr></thead>
<tbody>${rows.map((cells) => html`<tr>${cells.map(cellOf)}</tr>`)}</tbody></table></div>`
}

/** On a small screen, the content is behind a disclosure. */
export function folded(label: string, content: Html, isOpen = false): Html {
  return html`<details class="folded"${isOpen && html` open`}><summary class="button quiet">${label}</summary>
${content}</details>`
}

const numberClass = (head = '') => head.startsWith('#') && html` class="number"`

/** Shows names with their values. Leaves out absent values. */
export function facts(entries: Readonly<Record<string, Cell>>): Html {
  const shown = Object.entries(entries).filter(([, value]) => value || value === 0)
  return html`<dl>${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

/**
 * Attempts and failed threads are recorded with only the beginning of the reason. Two reasons count
 * as the same if they begin with the same characters, at most this number.
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
