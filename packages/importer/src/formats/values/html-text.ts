// Turns HTML of mails and comments into plain text.
import { compile } from 'html-to-text'
import { Parser } from 'htmlparser2'

/** Elements that stand in lines of their own, besides those that the converter knows. */
const LINES =
  'address caption center dd details dl dt fieldset figcaption figure legend li option summary tr'.split(
    ' ',
  )
const ONE_BREAK = { leadingLineBreaks: 1, trailingLineBreaks: 1 }

const convert = compile({
  wordwrap: false,
  formatters: {
    /**
     * A space separates the cells of a row. Mails are laid out by tables, so columns would tear
     * their texts apart.
     */
    cell(element, walk, builder) {
      walk(element.children, builder)
      builder.addInline(' ')
    },
  },
  limits: { maxInputLength: Number.MAX_SAFE_INTEGER },
  // Not only the body: mailing lists and scanners of mail write behind its end.
  baseElements: { selectors: [] },
  selectors: [
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true, linkBrackets: ['(', ')'] } },
    ...['head', 'img', 'script', 'style', 'title'].map((selector) => ({
      selector,
      format: 'skip',
    })),
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({
      selector,
      options: { uppercase: false },
    })),
    ...LINES.map((selector) => ({ selector, format: 'block', options: ONE_BREAK })),
    ...['td', 'th'].map((selector) => ({ selector, format: 'cell' })),
  ],
})

/** The converter is recursive, and its parser's time grows with the square of the depth. */
const DEEPEST = 50
/** The converter writes all lines of a text again for each of these elements around it. */
const PREFIXING = new Set(['blockquote', 'ol', 'ul'])
/**
 * Characters and tags, counted once for each PREFIXING element around them. Converting this many
 * takes 1 to 2 s.
 */
const MOST_PREFIXED = 4_000_000

/**
 * Returns the text, without images. HTML that nests or quotes too much is not converted and only
 * loses its tags.
 */
export function htmlToText(html: string): string {
  return (isTooDear(html) ? html.replace(/<[^<>]*>/g, ' ') : convert(html)).trim()
}

/** Counts by the converter's own parser: a close tag may end several elements, or none. */
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
