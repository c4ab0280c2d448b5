// How pages show the reason of a failure: in words, with the text of MongoDB or of the worker behind a disclosure.
import { reasonWords, SHOWN_REASON } from '@sluice/operations'
import { html } from 'hono/html'
import type { Html } from './page.ts'

/** Recorded tries and threads have only the beginning of their reason, which tells it from others. */
const BEGINNING = 200

/** A reason in a list: two lines at most, and all of it under the pointer. @param said what the page says already */
export function reasonLine(reason: string, said = ''): Html {
  const words = reasonWords(reason)
  if (said !== '' && reasonWords(said).startsWith(words.slice(0, BEGINNING))) return html`as above`
  return html`<span class="reason" title="${words.slice(0, SHOWN_REASON)}">${withCode(words)}</span>`
}

/** The reason of a page, with its text as it was recorded. */
export function reasonBlock(reason: string): Html {
  const words = reasonWords(reason)
  return html`<div class="problem">${withCode(words)}${words !== reason && rawReason(reason)}</div>`
}

/** A reason as it was recorded. */
export function rawReason(reason: string): Html {
  return html`<details><summary class="note">As it was recorded</summary><p class="raw">${reason.slice(0, SHOWN_REASON)}</p></details>`
}

/** Shows what stands between backticks as code. */
export function withCode(words: string): Html {
  const parts = words.slice(0, SHOWN_REASON).split('`')
  return html`${parts.map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part))}`
}
