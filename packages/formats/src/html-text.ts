// Turns HTML of mails and comments into plain text.
import { compile } from 'html-to-text'

/** Deeper elements are left out: the converter walks them recursively. */
const DEEPEST = 500

const heading = { options: { uppercase: false } }

const convert = compile({
  wordwrap: false,
  limits: { maxDepth: DEEPEST, ellipsis: '…', maxInputLength: Number.MAX_SAFE_INTEGER },
  selectors: [
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true, linkBrackets: ['(', ')'] } },
    { selector: 'img', format: 'skip' },
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, ...heading })),
  ],
})

/** Returns the text of HTML: paragraphs and lists as lines, links with their addresses in parentheses, no images. */
export function htmlToText(html: string): string {
  return convert(html).trim()
}
