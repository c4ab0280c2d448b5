// What a page or an act gets, and what it returns.
import type { FailedJobGroups } from '@sluice/contract'
import type { Logger } from '@sluice/ops'
import type { OperatorAccess, Visitor } from '@sluice/queue'
import type { ReadThread } from '@sluice/store/find'
import type { html } from 'hono/html'

/** What pages read from, and what acts act by. */
export interface PagesDeps extends OperatorAccess {
  readThread: ReadThread
  /** Groups all failed jobs by their reason. */
  readGroups: () => Promise<FailedJobGroups>
  /** The address of a trace, with `{traceId}`. */
  traceUrl: string | null
  log: Pick<Logger, 'info'>
}

/** A person who is logged in. */
export interface Session {
  visitor: Visitor
  /** Goes with every form that acts: no other site knows it. */
  csrf: string
}

/** The request of a person for a page or an act. */
export interface Visit extends Session {
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  body: unknown
  /** Aborts when nobody waits for the page any more. */
  gone: AbortSignal
}

/** A piece of a page. Everything else that stands in one is escaped. */
export type Html = ReturnType<typeof html>

export interface Page {
  title: string
  body: Html
  status?: number
  /** Further pieces, which the page shows as they are found. */
  rest?: AsyncIterable<Html>
}

/** Returns a page, the path of another one, or nothing if the address has none. */
export type Show = (visit: Visit, deps: PagesDeps) => Promise<Page | string | undefined>

export function isOperator({ visitor }: Session): boolean {
  return visitor.role === 'operator'
}
