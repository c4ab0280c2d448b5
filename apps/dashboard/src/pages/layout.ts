// The frame of every page, and what pages say in the same way: moments, numbers, and texts that may be long.
import type { Visitor } from '@sluice/queue'
import { html } from 'hono/html'

/** A piece of a page. Everything else that stands in one is escaped. */
export type Html = ReturnType<typeof html>

/** A person who asks for a page, or acts. */
export interface Visit {
  visitor: Visitor
  /** Goes with every form that acts: no other site knows it. */
  csrf: string
  params: Readonly<Record<string, string>>
  query: URLSearchParams
}

export interface Page {
  title: string
  body: Html
  status?: number
  /** Further pieces, which the page shows as they are found. */
  rest?: AsyncIterable<Html>
}

const NAVIGATION = [
  { path: '/', name: 'Find' },
  { path: '/overview', name: 'Overview' },
  { path: '/recent', name: 'Recent' },
  { path: '/failures', name: 'Failures' },
  { path: '/imports', name: 'Imports' },
  { path: '/operations', name: 'Operations' },
]

export function isOperator({ visitor }: Pick<Visit, 'visitor'>): boolean {
  return visitor.role === 'operator'
}

/** Builds a whole page. Without a visit, it has no navigation. @param path marks its place in the navigation. */
export async function renderPage({ title, body }: Page, visit?: Visit, path = ''): Promise<string> {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Sluice</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/page.css">
<script src="/assets/refresh.js" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<a class="brand" href="/">Sluice</a>
${visit && navigation(visit, path)}
</header>
<main id="main" tabindex="-1">
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`
  return String(await page)
}

function navigation(visit: Visit, path: string): Html {
  const links = NAVIGATION.map(({ path: to, name }) => {
    const isHere = to === '/' ? path === '/' || path === '/find' : path.startsWith(to)
    return html`<a href="${to}"${isHere ? html` aria-current="page"` : ''}>${name}</a>`
  })
  const { by, role } = visit.visitor
  return html`<nav aria-label="Pages">${links}${isOperator(visit) && html`<a href="/board">Bull Board</a>`}</nav>
${actForm(visit, '/logout', html`<span class="who">${role} ${by}</span> <button class="quiet">Log out</button>`, 'logout')}`
}

/** A form that acts. */
export function actForm({ csrf }: Visit, action: string, content: Html, style = 'act'): Html {
  return html`<form class="${style}" method="post" action="${action}"><input type="hidden" name="csrf" value="${csrf}">${content}</form>`
}

/** A moment in UTC, and how long ago it is. */
export function moment(iso: string): Html {
  const at = new Date(iso)
  const shown = at.toISOString().replace('T', ' ').slice(0, 19)
  return html`<time datetime="${at.toISOString()}">${shown} UTC <span class="ago">(${duration(Date.now() - at.getTime())} ago)</span></time>`
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** A duration in its largest unit of which it has two: `90 s`, `3 h`. */
export function duration(ms: number): string {
  const [unit, length] = UNITS.find(([, least]) => ms >= 2 * least) ?? ['s', 1_000]
  return `${Math.max(Math.floor(ms / length), 0)} ${unit}`
}

/** When a job was accepted: its id begins with the time (UUIDv7, RFC 9562). */
export function beginOf(id: string): string {
  return new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString()
}

/** Links to the page of a thread. @param name service/externalId */
export function threadLink(tenant: string, name: string, text = name): Html {
  const service = name.split('/', 1).join()
  const query = new URLSearchParams({ tenant, service, externalId: name.slice(service.length + 1) })
  return html`<a href="/thread?${query}">${text}</a>`
}

export function count(number: number, noun: string, plural = `${noun}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? noun : plural}`
}

/** A table that scrolls sideways by itself, also by the keyboard. Heads that begin with # are those of numbers. */
export function table(label: string, heads: readonly string[], rows: readonly (Html | '')[]): Html {
  return html`<div class="table" role="region" aria-label="${label}" tabindex="0"><table>
<thead><tr>${heads.map((head) => html`<th scope="col"${head.startsWith('#') && html` class="number"`}>${head.replace('#', '')}</th>`)}</tr></thead>
<tbody>${rows}</tbody></table></div>`
}

/** Names with their values. Absent values are left out. */
export function facts(entries: Readonly<Record<string, Html | string | number | undefined>>): Html {
  const shown = Object.entries(entries).filter(([, value]) => value !== undefined && value !== '')
  return html`<dl>${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}
