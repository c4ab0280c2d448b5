// A page of the dashboard: the input and result of its handler, its frame, and its forms.
import type { Status, ValidationError } from '@sluice/contract'
import type { Visitor } from '@sluice/credentials/sessions'
import { shown, type View } from '@sluice/operations'
import type { Logger } from '@sluice/process'
import { html } from 'hono/html'
import { type Html, plural } from './parts.ts'

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
  /** The verdict as HTML, from the frame. */
  verdict?: Html | undefined
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
 * Builds a whole page. Without a session, it has no navigation.
 * @param path marks the page's place in the navigation.
 */
export async function renderPage(
  { title, trail, body, shows, verdict }: Page,
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
${verdict}
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
