// How pages show the reason of a failure: in words, with the text of MongoDB or of the worker behind a disclosure.
import { reasonWords, SHOWN_REASON } from '@sluice/operations'
import { html } from 'hono/html'
import type { Html } from './page.ts'

/** A reason in a list: two lines at most, and all of it under the pointer. */
export function reasonLine(reason: string): Html {
  const words = reasonWords(reason)
  return html`<span class="reason" title="${words.slice(0, SHOWN_REASON)}">${withCode(words)}</span>`
}

/** The reason of a page, with its text as it was recorded. */
export function reasonBlock(reason: string): Html {
  const words = reasonWords(reason)
  const raw = html`<details><summary class="note">As it was recorded</summary><p class="raw">${reason.slice(0, SHOWN_REASON)}</p></details>`
  return html`<div class="problem"><p class="words">${withCode(words)}</p>${words !== reason && raw}</div>`
}

/** Returns whether two reasons have the same words. Recorded tries and threads have only the beginning of theirs. */
export function sameReason(reason: string, said: string): boolean {
  return said !== '' && reasonWords(said).startsWith(reasonWords(reason).slice(0, SAME))
}

/** Characters of words that tell reasons apart. */
const SAME = 200

/** Shows what stands between backticks as code. */
export function withCode(words: string): Html {
  const parts = words.slice(0, SHOWN_REASON).split('`')
  return html`${parts.map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part))}`
}
