// Decodes the texts of a mail, and gathers the headers from which postal-mime reads the rest.
// postal-mime knows fewer charsets and kinds of texts, takes 10 µs for each line, and copies a text
// several times.
import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { decodeWords } from 'postal-mime'
import { htmlToText } from '../values/html-text.ts'
import { decodeHeader } from './decode-header.ts'
import { decodeText, decodeTransfer, HTML } from './decode-text.ts'
import { beforeHeader, bodyStart, HEADER_NAME_BYTES, type Part, readPart } from './header.ts'

export interface DecodedMail {
  /** A mail with the header of this one, whose parts are the headers of its files. */
  headers: Buffer
  /** The texts of all parts. */
  text: string
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
  /** The headers of the mail and of its files, with the lines that join them. */
  headers: Buffer[]
  /** Where the header of the next part begins. */
  at: number
  /** Whether it is the header of an attached mail, rather than of a part. */
  isAttachedMail: boolean
  /** The number of attached mails that surround this place. */
  mails: number
  open: Boundary[]
  defaultType: string
}

const TEXT = 'text/plain'
const MESSAGE = 'message/rfc822'
/** The type of a mail whose header is UTF-8 (RFC 6532). */
const GLOBAL_MESSAGE = 'message/global'
/** A mail whose parts are nested deeper is rejected: each line is compared with each boundary. */
const DEEPEST = 256
/** At most this number of mails that are nested in each other is read. */
const DEEPEST_MAIL = 50
/** Bounds the copies: an encoded mail is decoded with the encoded mails that lie in it. */
const MOST_COPIED_BYTES = 256 * 1024 * 1024
/** What precedes a header is shorter than this. */
const BEFORE_HEADER_BYTES = 4096

/** Decodes the texts and the headers of all parts of a mail. */
export function decodeParts(mail: Buffer): DecodedMail {
  const decoding: Decoding = {
    mail,
    texts: [],
    headers: [],
    at: beforeHeader(mail.toString('latin1', 0, BEFORE_HEADER_BYTES)).length,
    isAttachedMail: false,
    mails: 0,
    open: [],
    defaultType: TEXT,
    notes: [],
  }
  decodeAll(decoding)
  const { headers, texts, notes } = decoding
  const own = headers.length > 1 ? BEFORE_OWN : OF_TEXT
  return { headers: Buffer.concat([own, ...headers]), text: texts.join('\n'), notes }
}

/** No mail can contain it, because it is random. */
const BOUNDARY = randomUUID()
/** If a header occurs twice, the first one counts, so one of these lines is put in front. */
const OF_TEXT = Buffer.from(`Content-Type: ${TEXT}\n`)
const BEFORE_OWN = Buffer.from(`Content-Type: multipart/mixed; boundary=${BOUNDARY}\n`)
const BEFORE_FILE = Buffer.from(`\n\n--${BOUNDARY}\n`)

function decodeAll(decoding: Decoding): void {
  while (decoding.at < decoding.mail.length) decodeNext(decoding)
}

function decodeNext(decoding: Decoding): void {
  const { mail, at, open, headers, texts, isAttachedMail, defaultType } = decoding
  const headerEnd = hasHeaderAt(mail, at) ? bodyStart(mail, at) : at
  const limit = nextDelimiter(mail.subarray(0, headerEnd), at, open)
  const body = limit?.start ?? headerEnd
  const raw = mail.subarray(at, body)
  const part = readPart(raw.toString('latin1'), defaultType)
  const header = decodeHeader(raw, isUtf8(raw) ? undefined : (part.charset ?? firstCharset(mail)))
  if (headers.length === 0) headers.push(header)
  if (isAttachedMail) texts.push(shownHeader(header.toString()))
  decoding.isAttachedMail = false
  decoding.defaultType = TEXT
  if (part.type === MESSAGE || part.type === GLOBAL_MESSAGE) {
    decodeMail(decoding, body, part.transfer)
    return
  }
  const isMultipart = part.type.startsWith('multipart/')
  const own =
    isMultipart && part.boundary !== undefined ? openBoundary(decoding, part, body) : undefined
  const next = limit ?? own ?? nextDelimiter(mail, body, open)
  // A mail of several parts without its boundary is read as text (RFC 2045).
  const leaf = isMultipart ? { ...part, type: TEXT } : part
  if (own === undefined) decodePart(leaf, header, mail.subarray(body, next?.start), decoding)
  decoding.at = skipDelimiters(decoding, next)
}

/** Returns the lines of an attached mail's header that its readers see. */
function shownHeader(header: string): string {
  const lines = header.replace(/(?<!\r)\r*\n(?=[ \t])/g, '').match(SHOWN) ?? []
  return lines.map((line) => `${decodeWords(line)}\n`).join('')
}

const SHOWN = /^(from|to|b?cc|date|subject)[ \t]*:[^\r\n]*/gim

/**
 * Decodes an attached mail. If it is encoded as a whole, it is decoded as a mail of its own:
 * boundaries of the parts around it do not count in it.
 */
function decodeMail(decoding: Decoding, body: number, transfer: Part['transfer']): void {
  const { mail, open, notes } = decoding
  const mails = decoding.mails + 1
  if (transfer === undefined && mails <= DEEPEST_MAIL) {
    decoding.at = body
    decoding.isAttachedMail = true
    decoding.mails = mails
    return
  }
  const next = nextDelimiter(mail, body, open)
  if (mails <= DEEPEST_MAIL && mails * (mail.length - body) <= MOST_COPIED_BYTES) {
    const { bytes } = decodeTransfer(mail.subarray(body, next?.start), transfer)
    decodeAll({ ...decoding, mail: bytes, at: 0, isAttachedMail: true, mails, open: [] })
  } else notes.push({ kind: 'skipped', reason: TOO_DEEP })
  decoding.at = skipDelimiters(decoding, next)
}

const TOO_DEEP = `attached mails that lie in more than ${DEEPEST_MAIL} others, or too deep in a large mail`

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
  if (open.length === DEEPEST) throw new Error(`parts that are nested deeper than ${DEEPEST}`)
  open.push({ text: boundary, closing: `${boundary}--`, type, parts: 0, mails })
  const next = nextDelimiter(mail, body, open)
  if (next?.depth === open.length - 1) return next
  open.pop()
  return undefined
}

function decodePart(part: Part, header: Buffer, body: Buffer, decoding: Decoding): void {
  const { notes, open, headers, texts } = decoding
  if (!isText(part)) {
    const isInText = part.hasContentId && open.some(({ type }) => type === 'multipart/related')
    if (!isInText) headers.push(BEFORE_FILE, header)
    return
  }
  const alternatives = open.filter(({ type }) => type === 'multipart/alternative')
  if (alternatives.some(({ chosen, parts }) => (chosen ?? parts) !== parts)) return
  const { utf8, isCut, isCharsetKnown } = decodeText(body, part)
  if (isCut) notes.push({ kind: 'cut', reason: FOOTER })
  if (!isCharsetKnown) notes.push({ kind: 'replaced', reason: UNKNOWN_CHARSET })
  const text = part.type === HTML ? htmlToText(utf8) : utf8.toString()
  if (alternatives.length > 0 && text.trim() !== '')
    for (const one of alternatives) one.chosen = one.parts
  texts.push(text)
}

const FOOTER = 'texts in base64 with a plain footer, which is left out'
const UNKNOWN_CHARSET = 'texts in charsets that are not known, read as windows-1252'

/** Returns whether a part is a text. Old programs name no subtype. */
function isText({ type, isFile }: Part): boolean {
  return !isFile && /^text(\/(plain|html|enriched|richtext|markdown))?$/.test(type)
}

/** Skips delimiters up to one that begins a part. Returns where the part begins. */
function skipDelimiters(decoding: Decoding, first: Delimiter | undefined): number {
  const { mail, open } = decoding
  for (let next = first; next !== undefined; next = nextDelimiter(mail, next.end, open)) {
    const { end, depth, isLast } = next
    open.length = isLast ? depth : depth + 1
    const parent = open.at(-1)
    decoding.mails = parent?.mails ?? 0
    decoding.defaultType = parent?.type === 'multipart/digest' ? MESSAGE : TEXT
    if (isLast) continue
    if (parent) parent.parts += 1
    return end
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
