// The input of pages and acts, and what they return. An act is a POST that changes or reveals something.
import type { Fault, Status } from '@sluice/contract'
import type { Visitor } from '@sluice/credentials/sessions'
import type { View } from '@sluice/operations'
import type { Logger } from '@sluice/process'
import { html } from 'hono/html'

/** A person who is logged in. */
export interface Session {
  visitor: Visitor
  /** Every form that changes something sends this token, which no other site knows. */
  csrf: string
}

/** The request of a person for a page or an act. */
export interface Visit extends Session {
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  body: unknown
  /** What the person may see and do. */
  view: View
  /** The address of a trace, with `{traceId}`. */
  traceUrl: string | null
  log: Pick<Logger, 'info'>
  /** Aborts when nobody waits for the page any more. */
  gone: AbortSignal
}

/** A piece of a page. Any other value in a template is escaped. */
export type Html = ReturnType<typeof html>

export interface Page {
  title: string
  /** The pages above it, the outermost first. */
  trail?: readonly Html[]
  body: Html
  status?: number
  /** The status of which the frame shows the verdict. A page that reads the status itself returns it, so that both agree. */
  shows?: Status | undefined
  /** The same as people read it, from the frame. */
  verdict?: Html | undefined
}

/** Returns a page, the path to redirect to, or undefined if the address has no page. */
export type Show = (visit: Visit) => Promise<Page | string | undefined>

/** Returns the parameters of a query that are not blank: a form sends each of its fields. */
export function inputOf(query: URLSearchParams): Record<string, string> {
  return Object.fromEntries([...query].filter(([, value]) => value.trim() !== ''))
}

/** The page of a query with faults, below its form. */
export function faultPage(title: string, errors: readonly Pick<Fault, 'message'>[], form: Html): Page {
  const why = errors.map(({ message }) => message).join(' ')
  return { title, body: html`${form}<p class="problem" role="alert">${why}</p>`, status: 400 }
}

export function isOperator({ visitor }: Session): boolean {
  return visitor.role === 'operator'
}
