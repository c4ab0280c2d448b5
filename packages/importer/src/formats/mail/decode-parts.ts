// Rewrites the texts of a mail as UTF-8 in one line of base64, because postal-mime knows fewer charsets and forms of
// texts, and takes 10 µs for each line.
import { isUtf8 } from 'node:buffer'
import { decodeHeader } from './decode-header.ts'
import { decodeText } from './decode-text.ts'
import { beforeHeader, bodyStart } from './header.ts'
import { type Part, readPart } from './part.ts'

export interface DecodedMail {
  bytes: Buffer
  /** What was replaced or cut. */
  notes: { kind: 'replaced' | 'cut'; reason: string }[]
}

/** A boundary between parts, and the type of those that name none. */
interface Boundary {
  text: string
  defaultType: string
}

/** A line with a boundary. */
interface Delimiter {
  start: number
  end: number
  /** The index of the boundary among those that are open. */
  depth: number
  isLast: boolean
}

interface Decoding extends Pick<DecodedMail, 'notes'> {
  mail: Buffer
  /** Where the header of the next part begins. */
  at: number
  open: Boundary[]
  defaultType: string
  pieces: Buffer[]
}

const TEXT = 'text/plain'
const MESSAGE = 'message/rfc822'
/** An attached mail has words, so its text is read, too. Of two headers with one name, the first counts. */
const INLINE = Buffer.from('Content-Disposition: inline\n')
/** What stands before a header is shorter. */
const BEFORE_HEADER_BYTES = 4096

/** Decodes the texts and the headers of all parts of a mail. */
export function decodeParts(mail: Buffer): DecodedMail {
  const at = beforeHeader(mail.toString('latin1', 0, BEFORE_HEADER_BYTES)).length
  const decoding: Decoding = { mail, at, open: [], defaultType: TEXT, pieces: [], notes: [] }
  while (decoding.at < mail.length) decodeNext(decoding)
  return { bytes: Buffer.concat(decoding.pieces), notes: decoding.notes }
}

function decodeNext(decoding: Decoding): void {
  const { mail, at, open, pieces, defaultType } = decoding
  const limit = nextDelimiter(mail, at, open)
  const body = Math.min(bodyStart(mail, at), limit?.start ?? mail.length)
  const header = mail.subarray(at, body)
  const part = readPart(header.toString('latin1'), defaultType)
  const head = decodeHeader(header, isUtf8(header) ? undefined : (part.charset ?? firstCharset(mail)))
  decoding.defaultType = TEXT
  if (part.type === MESSAGE && part.transfer === undefined) {
    pieces.push(INLINE, head)
    decoding.at = body
    return
  }
  const isMultipart = part.type.startsWith('multipart/')
  const own = isMultipart && part.boundary !== undefined ? openBoundary(decoding, part, body) : undefined
  const next = own ?? limit
  const content = mail.subarray(body, next?.start ?? mail.length)
  // A mail of several parts without its boundary is read as text (RFC 2045).
  if (isMultipart && own === undefined) pieces.push(...decodePart({ ...part, type: TEXT }, head, content, decoding))
  else pieces.push(...decodePart(part, head, content, decoding))
  decoding.at = skipDelimiters(decoding, next)
}

/** Returns the first delimiter of a part that has parts, if it has one. */
function openBoundary({ mail, open }: Decoding, { type, boundary = '' }: Part, body: number): Delimiter | undefined {
  open.push({ text: boundary, defaultType: type === 'multipart/digest' ? MESSAGE : TEXT })
  const next = nextDelimiter(mail, body, open)
  if (next?.depth === open.length - 1) return next
  open.pop()
  return undefined
}

function decodePart(part: Part, head: Buffer, body: Buffer, { notes }: Decoding): Buffer[] {
  if (!isText(part)) return [head, body]
  const isHtml = part.type === 'text/html'
  const { utf8, isCut, isCharsetKnown } = decodeText(body, { ...part, isHtml })
  if (isCut) notes.push({ kind: 'cut', reason: 'plain footers behind texts in base64' })
  if (!isCharsetKnown) notes.push({ kind: 'replaced', reason: 'charsets that are not known, by windows-1252' })
  const type = `Content-Type: ${isHtml ? 'text/html' : TEXT}; charset=utf-8\nContent-Transfer-Encoding: base64\n`
  return [Buffer.from(type), head, Buffer.from(`${utf8.toString('base64')}\n`)]
}

/** Old programs name no subtype. */
function isText({ type, isFile }: Part): boolean {
  return !isFile && /^text(\/(plain|html|enriched|richtext|markdown))?$/.test(type)
}

/** Passes delimiters on, up to one that begins a part. Returns where the part begins. */
function skipDelimiters(decoding: Decoding, first: Delimiter | undefined): number {
  const { mail, open, pieces } = decoding
  for (let next = first; next !== undefined; ) {
    const { start, end, depth, isLast } = next
    open.length = isLast ? depth : depth + 1
    pieces.push(mail.subarray(start, end))
    decoding.defaultType = open.at(-1)?.defaultType ?? TEXT
    if (!isLast) return end
    next = nextDelimiter(mail, end, open)
    pieces.push(mail.subarray(end, next?.start ?? mail.length))
  }
  return mail.length
}

/** A longer line has no boundary. */
const BOUNDARY_BYTES = 1000
const DELIMITER = '\n--'

function nextDelimiter(mail: Buffer, from: number, open: readonly Boundary[]): Delimiter | undefined {
  if (open.length === 0) return undefined
  for (let start = mail[from] === 0x2d ? from : mail.indexOf(DELIMITER, from) + 1; start > 0; ) {
    const newline = mail.indexOf('\n', start)
    const end = newline === -1 ? mail.length : newline + 1
    const line = mail.toString('latin1', start + 2, Math.min(end, start + BOUNDARY_BYTES)).trimEnd()
    const depth = open.findLastIndex(({ text }) => line === text || line === `${text}--`)
    if (depth !== -1) return { start, end, depth, isLast: line !== open[depth]?.text }
    start = mail.indexOf(DELIMITER, start) + 1
  }
  return undefined
}

const CHARSET_BYTES = 64 * 1024

/** The charset of a part stands for that of the whole, if a header has 8-bit text. */
function firstCharset(mail: Buffer): string | undefined {
  return /charset\s*=\s*"?([\w.:-]+)/i.exec(mail.toString('latin1', 0, CHARSET_BYTES))?.[1]
}
