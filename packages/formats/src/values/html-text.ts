// Turns HTML of mails and comments into plain text.
import { compile } from 'html-to-text'

/** Deeper elements are left out: the converter walks them recursively. */
const DEEPEST = 500

const heading = { options: { uppercase: false } }

const convert = compile({
  wordwrap: false,
  limits: { maxDepth: DEEPEST, ellipsis: '…', maxInputLength: Number.MAX_SAFE_INTEGER },
  // The whole document: lists and scanners of mail write behind the end of the body.
  baseElements: { selectors: [] },
  selectors: [
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true, linkBrackets: ['(', ')'] } },
    ...['head', 'img', 'script', 'style', 'title'].map((selector) => ({ selector, format: 'skip' })),
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, ...heading })),
  ],
})

/** The parser's time grows with the square of the depth: minutes for a megabyte. */
const DEEPEST_PARSED = 5000
const TAG = /<(\/?)([a-z][a-z0-9]*)/gi
/** Elements without an end tag, or that the next one ends. */
const UNCLOSED = new Set(
  'area base br col dd dt embed hr img input li link meta option p source td th tr wbr'.split(' '),
)

/** Writes links with their addresses in parentheses, and no images. HTML that nests too deep only loses its tags. */
export function htmlToText(html: string): string {
  return (isTooDeep(html) ? html.replace(/<[^<>]*>/g, ' ') : convert(html)).trim()
}

function isTooDeep(html: string): boolean {
  let depth = 0
  for (const [, slash, name = ''] of html.matchAll(TAG)) {
    if (UNCLOSED.has(name.toLowerCase())) continue
    depth = Math.max(0, depth + (slash ? -1 : 1))
    if (depth > DEEPEST_PARSED) return true
  }
  return false
}
