// Decodes the texts of a mail, and replaces each by a placeholder. postal-mime knows fewer charsets
// and kinds of texts, takes 10 µs for each line, and copies a text several times.
import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { htmlToText } from '../values/html-text.ts'
import { decodeHeader } from './decode-header.ts'
import { decodeText, decodeTransfer, HTML } from './decode-text.ts'
import { beforeHeader, bodyStart, HEADER_NAME_BYTES, type Part, readPart } from './header.ts'

export interface DecodedMail {
  /** The mail, with placeholders for its texts. */
  bytes: Buffer
  /** Puts the texts in place of their placeholders. */
  withTexts: (text: string) => string
  /** What was replaced, cut or left out. */
  notes: { kind: 'replaced' | 'cut' | 'skipped'; reason: string }[]
}

/** A boundary between parts. */
interface Boundary {
  text: string
  /** The last delimiter of the boundary, as a text. */
  closing: string
  type: string
  /** The number of parts that have begun. */
  parts: number
  /** The number of attached mails that surround the parts. */
  mails: number
  /** In a `multipart/alternative`: the index of the first part with text, which is read. */
  chosen?: number
}

/** A line with a boundary. */
interface Delimiter {
  start: number
  end: number
  /** The index of the boundary among the open boundaries. */
  depth: number
  isLast: boolean
}

interface Decoding extends Pick<DecodedMail, 'notes'> {
  mail: Buffer
  texts: string[]
  /** Where the header of the next part begins. */
  at: number
  /** The number of attached mails that surround this place. */
  mails: number
  open: Boundary[]
  defaultType: string
  pieces: Buffer[]
}

const TEXT = 'text/plain'
const MESSAGE = 'message/rfc822'
/** The type of a mail whose header is UTF-8 (RFC 6532). */
const GLOBAL_MESSAGE = 'message/global'
/** Replaces the header of an attached mail, so that its text is read as well. */
const INLINE = Buffer.from(
  'Content-Type: message/rfc822\nContent-Disposition: inline\nContent-Transfer-Encoding: 8bit\n',
)
/** postal-mime rejects a mail whose parts are nested deeper. */
const DEEPEST = 256
/** At most this number of mails that are nested in each other is read. */
export const DEEPEST_MAIL = 50
/** postal-mime copies each attached mail with its content. A mail with more copies is not read. */
const MOST_COPIED_BYTES = 256 * 1024 * 1024
/** What precedes a header is shorter than this. */
const BEFORE_HEADER_BYTES = 4096

/** Decodes the texts and the headers of all parts of a mail. */
export function decodeParts(mail: Buffer): DecodedMail {
  const at = beforeHeader(mail.toString('latin1', 0, BEFORE_HEADER_BYTES)).length
  const decoding: Decoding = {
    mail,
    texts: [],
    at,
    mails: 0,
    open: [],
    defaultType: TEXT,
    pieces: [],
    notes: [],
  }
  decodeAll(decoding)
  const { pieces, texts, notes } = decoding
  const withTexts = (text: string) =>
    text.replace(PLACEHOLDERS, (_, index) => texts[Number(index)] ?? '')
  return { bytes: Buffer.concat(pieces), withTexts, notes }
}

/** No mail can contain it, because it is random. */
const PLACEHOLDER = randomUUID()
const PLACEHOLDERS = new RegExp(`${PLACEHOLDER} (\\d+);`, 'g')

function decodeAll(decoding: Decoding): void {
  while (decoding.at < decoding.mail.length && decoding.open.length <= DEEPEST) decodeNext(decoding)
  decoding.pieces.push(decoding.mail.subarray(decoding.at))
}

function decodeNext(decoding: Decoding): void {
  const { mail, at, open, pieces, defaultType } = decoding
  const headerEnd = hasHeaderAt(mail, at) ? bodyStart(mail, at) : at
  const limit = nextDelimiter(mail.subarray(0, headerEnd), at, open)
  const body = limit?.start ?? headerEnd
  const header = body === at ? BLANK_LINE : mail.subarray(at, body)
  const part = readPart(header.toString('latin1'), defaultType)
  const decoded = decodeHeader(
    header,
    isUtf8(header) ? undefined : (part.charset ?? firstCharset(mail)),
  )
  const head = isClosed(decoded) ? decoded : Buffer.concat([decoded, BLANK_LINE])
  decoding.defaultType = TEXT
  if (part.type === MESSAGE || part.type === GLOBAL_MESSAGE) {
    decodeMail(decoding, head, body, part.transfer)
    return
  }
  const isMultipart = part.type.startsWith('multipart/')
  const own =
    isMultipart && part.boundary !== undefined ? openBoundary(decoding, part, body) : undefined
  const next = limit ?? own ?? nextDelimiter(mail, body, open)
  const content = mail.subarray(body, next?.start ?? mail.length)
  // A mail of several parts without its boundary is read as text (RFC 2045).
  if (isMultipart && own === undefined)
    pieces.push(...decodePart({ ...part, type: TEXT }, head, content, decoding))
  else if (own) pieces.push(typeHeader(part), head, content)
  else pieces.push(...decodePart(part, head, content, decoding))
  decoding.at = skipDelimiters(decoding, next)
}

/**
 * Decodes an attached mail. If it is encoded as a whole, it is decoded as a mail of its own:
 * boundaries of the parts around it do not count in it.
 */
function decodeMail(
  decoding: Decoding,
  head: Buffer,
  body: number,
  transfer: Part['transfer'],
): void {
  const { mail, open, pieces, notes } = decoding
  const mails = decoding.mails + 1
  const isRead = mails <= DEEPEST_MAIL && mails * (mail.length - body) <= MOST_COPIED_BYTES
  pieces.push(isRead ? INLINE : UNUSED, head)
  if (isRead && transfer === undefined) {
    decoding.at = body
    decoding.mails = mails
    return
  }
  const next = nextDelimiter(mail, body, open)
  if (isRead) {
    const { bytes } = decodeTransfer(mail.subarray(body, next?.start), transfer)
    decodeAll({ ...decoding, mail: bytes, at: 0, mails, open: [] })
  } else notes.push({ kind: 'skipped', reason: TOO_DEEP })
  pieces.push(BLANK_LINE)
  decoding.at = skipDelimiters(decoding, next)
}

const TOO_DEEP = `attached mails that lie in more than ${DEEPEST_MAIL} others, or too deep in a large mail`

/**
 * Makes a header line, to be put in front of a header whose type is empty, or whose boundary is in
 * pieces. If a header occurs twice, the first one counts.
 */
function typeHeader({ type, boundary = '' }: Part): Buffer {
  return Buffer.from(
    `Content-Type: ${type}; boundary="${boundary.replaceAll(/["\\]/g, '\\$&')}"\n`,
    'latin1',
  )
}

/** Some programs write no blank line in front of the first boundary, or a space into it. */
function isClosed(header: Buffer): boolean {
  return /(^|\n)\r*\n$/.test(header.toString('latin1', header.length - LINE_ENDS))
}

/** There may be several carriage returns in front of the last newline. */
const LINE_ENDS = 10

/** Some programs write a part's text without a header, and without a blank line instead. */
function hasHeaderAt(mail: Buffer, at: number): boolean {
  return /^([!-9;-~]+[ \t]*:|\r*\n)/.test(mail.toString('latin1', at, at + HEADER_NAME_BYTES))
}

/** Returns the first delimiter of the parts, if there is one. */
function openBoundary(
  { mail, mails, open }: Decoding,
  { type, boundary = '' }: Part,
  body: number,
): Delimiter | undefined {
  open.push({ text: boundary, closing: `${boundary}--`, type, parts: 0, mails })
  const next = nextDelimiter(mail, body, open)
  if (next?.depth === open.length - 1) return next
  open.pop()
  return undefined
}

function decodePart(part: Part, head: Buffer, body: Buffer, decoding: Decoding): Buffer[] {
  // Keep only the header, for the name of the file. postal-mime would take 10 µs for each line, for
  // every mail around it.
  if (!isText(part)) return [head, BLANK_LINE]
  const { notes, open, texts } = decoding
  const alternatives = open.filter(({ type }) => type === 'multipart/alternative')
  if (alternatives.some(({ chosen, parts }) => (chosen ?? parts) !== parts))
    return [UNUSED, head, BLANK_LINE]
  const { utf8, isCut, isCharsetKnown } = decodeText(body, part)
  if (isCut) notes.push({ kind: 'cut', reason: FOOTER })
  if (!isCharsetKnown) notes.push({ kind: 'replaced', reason: UNKNOWN_CHARSET })
  const text = part.type === HTML ? htmlToText(utf8.toString()) : utf8.toString()
  if (alternatives.length > 0 && text.trim() !== '')
    for (const one of alternatives) one.chosen = one.parts
  // In base64, because the line end in front of the next boundary would belong to the text.
  const placeholder = Buffer.from(`${PLACEHOLDER} ${texts.push(text) - 1};`).toString('base64')
  return [PLAIN, head, Buffer.from(placeholder), BLANK_LINE]
}

const FOOTER = 'texts in base64 with a plain footer, which is left out'
const UNKNOWN_CHARSET = 'texts in charsets that are not known, read as windows-1252'

/** If a header occurs twice, the first one counts, so these lines are put in front. */
const PLAIN = Buffer.from(
  `Content-Type: ${TEXT}; charset=utf-8\nContent-Transfer-Encoding: base64\n`,
)
/** Marks a part whose text is not used, because the text is taken only from plain parts. */
const UNUSED = Buffer.from('Content-Type: text/html\n')
const BLANK_LINE = Buffer.from('\n')

/** Returns whether a part is a text. Old programs name no subtype. */
function isText({ type, isFile }: Part): boolean {
  return !isFile && /^text(\/(plain|html|enriched|richtext|markdown))?$/.test(type)
}

/** Passes on delimiters up to one that begins a part. Returns where the part begins. */
function skipDelimiters(decoding: Decoding, first: Delimiter | undefined): number {
  const { mail, open, pieces } = decoding
  for (let next = first; next !== undefined; ) {
    const { start, end, depth, isLast } = next
    open.length = isLast ? depth : depth + 1
    pieces.push(mail.subarray(start, end))
    const parent = open.at(-1)
    decoding.mails = parent?.mails ?? 0
    decoding.defaultType = parent?.type === 'multipart/digest' ? MESSAGE : TEXT
    if (parent && !isLast) parent.parts += 1
    if (!isLast) return end
    next = nextDelimiter(mail, end, open)
    pieces.push(mail.subarray(end, next?.start ?? mail.length))
  }
  return mail.length
}

/** A longer line is not a boundary. */
const BOUNDARY_BYTES = 1000
const DELIMITER = '\n--'

function nextDelimiter(
  mail: Buffer,
  from: number,
  open: readonly Boundary[],
): Delimiter | undefined {
  if (open.length === 0) return undefined
  for (let start = mail[from] === 0x2d ? from : mail.indexOf(DELIMITER, from) + 1; start > 0; ) {
    const newline = mail.indexOf('\n', start)
    const end = newline === -1 ? mail.length : newline + 1
    const line = mail.toString('latin1', start + 2, Math.min(end, start + BOUNDARY_BYTES)).trimEnd()
    const depth = open.findLastIndex(({ text, closing }) => line === text || line === closing)
    if (depth !== -1) return { start, end, depth, isLast: line !== open[depth]?.text }
    start = mail.indexOf(DELIMITER, start) + 1
  }
  return undefined
}

const CHARSET_BYTES = 64 * 1024

/** The charset of the first part that names one is used for 8-bit text in the mail's header. */
function firstCharset(mail: Buffer): string | undefined {
  return /charset\s*=\s*"?([\w.:-]+)/i.exec(mail.toString('latin1', 0, CHARSET_BYTES))?.[1]
}
