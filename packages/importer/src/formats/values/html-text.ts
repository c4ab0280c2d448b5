// Turns HTML of mails and comments into plain text.
import { compile } from 'html-to-text'
import { Parser } from 'htmlparser2'

const heading = { options: { uppercase: false } }

const convert = compile({
  wordwrap: false,
  limits: { maxInputLength: Number.MAX_SAFE_INTEGER },
  // The whole document: lists and scanners of mail write behind the end of the body.
  baseElements: { selectors: [] },
  selectors: [
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true, linkBrackets: ['(', ')'] } },
    ...['head', 'img', 'script', 'style', 'title'].map((selector) => ({ selector, format: 'skip' })),
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, ...heading })),
  ],
})

/** The converter walks elements recursively, and the parser's time grows with the square of their depth. */
const DEEPEST = 50
/** For each of these elements around a text, the converter writes all lines of the text anew. */
const PREFIXING = new Set(['blockquote', 'ol', 'ul'])
/** Characters and tags, each times the prefixing elements around it. The converter needs a second or two for these. */
const MOST_PREFIXED = 4_000_000

/**
 * Writes links with their addresses in parentheses, and no images. HTML that nests too deep, or quotes too much, only
 * loses its tags.
 */
export function htmlToText(html: string): string {
  return (isTooDear(html) ? html.replace(/<[^<>]*>/g, ' ') : convert(html)).trim()
}

/** Counts as the converter's own parser does: a close tag may end several elements, or none. */
function isTooDear(html: string): boolean {
  let depth = 0
  let prefixes = 0
  let prefixed = 0
  const isOver = () => depth > DEEPEST || prefixed > MOST_PREFIXED
  const parser = new Parser({
    onopentagname(name) {
      depth += 1
      if (PREFIXING.has(name)) prefixes += 1
      prefixed += prefixes
      if (isOver()) parser.pause()
    },
    onclosetag(name) {
      depth -= 1
      if (PREFIXING.has(name)) prefixes -= 1
    },
    ontext(text) {
      prefixed += prefixes * text.length
      if (isOver()) parser.pause()
    },
  })
  parser.write(html)
  return isOver()
}
