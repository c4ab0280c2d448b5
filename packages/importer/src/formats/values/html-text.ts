// Converts HTML of mails and comments to plain text.
import { compile } from 'html-to-text'
import { Parser } from 'htmlparser2'

/** Elements that begin a new line, besides those that the converter knows. */
const LINES =
  'address caption center dd details dl dt fieldset figcaption figure legend li option summary tr'.split(
    ' ',
  )
const ONE_BREAK = { leadingLineBreaks: 1, trailingLineBreaks: 1 }

const convert = compile({
  wordwrap: false,
  formatters: {
    /** Columns would tear texts apart, because mails use tables for their layout. */
    cell(element, walk, builder) {
      walk(element.children, builder)
      builder.addInline(' ')
    },
  },
  limits: { maxInputLength: Number.MAX_SAFE_INTEGER },
  // Not only the body, because mailing lists and mail scanners write after its end.
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

/** The converter is recursive, and the time of its parser grows with the square of the depth. */
const DEEPEST = 50
/** Within each of these elements, the converter writes all lines of a text again. */
const PREFIXING = new Set(['blockquote', 'ol', 'ul'])
/**
 * Bounds the characters and tags, each counted once for each PREFIXING element around it.
 * Converting this number takes 1 to 2 s.
 */
const MOST_PREFIXED = 4_000_000

/** What HTML shows as a space. Many texts have nothing else of HTML, and need no converter. */
const SPACE = /[ \t\r\n\f\u200B]+/

/** A parsed document needs up to 60 times its size in memory, so longer HTML is read in pieces. */
const LONGEST_WHOLE = 256 * 1024
const PIECE_BYTES = 64 * 1024

/** Returns the text, without images. If HTML nests or quotes too much, only removes its tags. */
export function htmlToText(html: string | Buffer): string {
  if (typeof html === 'string' && !/[<&]/.test(html)) return html.split(SPACE).join(' ').trim()
  const pieces = html.length <= LONGEST_WHOLE ? [html.toString()] : piecesOf(html)
  if (isTooExpensive(pieces))
    return html
      .toString()
      .replace(/<[^<>]*>/g, ' ')
      .trim()
  // Copied: the converter's strings are chains of their parts, several times as large.
  const texts = Array.from(pieces, (piece) => Buffer.from(`${convert(piece)}\n`).toString())
  return texts.join('').trim()
}

const WORD_ENDS = Buffer.from(' \t\r\n')

/** Pieces are decoded one at a time, because a string may need twice the memory of its bytes. */
function piecesOf(text: string | Buffer): Iterable<string> {
  const html = typeof text === 'string' ? Buffer.from(text) : text
  const ends: number[] = []
  let [open, close] = [-1, -1]
  for (let end = 0; end < html.length; ends.push(end)) {
    end = Math.min(end + PIECE_BYTES, html.length)
    // Only what was passed is searched again, so that all searches read the text once.
    if (open < end) open = indexIn(html, '<', end)
    if (close < end) close = indexIn(html, '>', end)
    // A piece ends behind a tag or, outside of tags, behind a word.
    if (close < open) end = close + 1
    else while (end < open && !WORD_ENDS.includes(html[end] ?? 0)) end += 1
  }
  return {
    *[Symbol.iterator]() {
      for (const [at, end] of ends.entries()) yield html.toString('utf8', ends[at - 1] ?? 0, end)
    },
  }
}

function indexIn(html: Buffer, bracket: string, from: number): number {
  const index = html.indexOf(bracket, from)
  return index === -1 ? html.length : index
}

/**
 * Counts with the converter's own parser, because a closing tag may end several elements, or none.
 */
function isTooExpensive(pieces: Iterable<string>): boolean {
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
  for (const piece of pieces) if (!isOver()) parser.write(piece)
  return isOver()
}
