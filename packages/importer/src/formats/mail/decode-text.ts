// Decodes the text of a part of a mail: its transfer encoding, its soft line breaks, and its
// charset.
import { isUtf8 } from 'node:buffer'
import { toUtf8 } from './charsets.ts'
import { decodeQuoted } from './decode-header.ts'
import type { Part } from './header.ts'

/**
 * Decodes a text. HTML may name a charset itself. That one counts if it is UTF-8 and the bytes are
 * valid UTF-8, or if the part's header names none.
 */
export function decodeText(body: Buffer, part: Part) {
  const { type, transfer, charset, isFlowed, deletesSpaces } = part
  const { bytes, isCut } = decodeTransfer(body, transfer)
  const ofHtml = type === HTML ? META.exec(bytes.toString('latin1', 0, META_BYTES))?.[1] : undefined
  const named = /^utf-?8$/i.test(ofHtml ?? '') && isUtf8(bytes) ? ofHtml : (charset ?? ofHtml)
  const whole = isFlowed
    ? Buffer.from(unfold(bytes.toString('latin1'), deletesSpaces), 'latin1')
    : bytes
  const { bytes: utf8, isKnown } = toUtf8(whole, named)
  return { utf8, isCut, isCharsetKnown: isKnown }
}

export const HTML = 'text/html'
const META = /<meta[^<>]+charset\s*=\s*["']?([\w-]+)/i
const META_BYTES = 4096

/**
 * Decodes base64 or quoted-printable. `isCut`: a plain text that follows the base64, such as a
 * footer, was left out.
 */
export function decodeTransfer(body: Buffer, transfer: Part['transfer']) {
  if (transfer === 'base64') return decodeBase64(body)
  if (transfer !== 'quoted-printable') return { bytes: body, isCut: false }
  const decoded: Buffer[] = []
  for (let [start, end] = [0, 0]; start < body.length; start = end) {
    end = body.indexOf('\n', start + PIECE_BYTES) + 1 || body.length
    const joined = body.toString('latin1', start, end).replace(/=[ \t]*(?:\r*\n|$)/g, '')
    decoded.push(decodeQuoted(joined))
  }
  return { bytes: Buffer.concat(decoded), isCut: false }
}

/** A replacement needs many times the memory of its text, so lines are decoded in pieces. */
const PIECE_BYTES = 256 * 1024

const BASE64_LINE = /^[A-Za-z\d+/=]+$/

/** A mailing list's footer is read if it is base64 as well, and left out if it is plain. */
function decodeBase64(body: Buffer) {
  const lines = body
    .toString('latin1')
    .split('\n')
    .map((line) => line.trim())
  let isPadded = false
  const end = lines.findIndex((line) => {
    const isFooter = line !== '' && (!BASE64_LINE.test(line) || (isPadded && line.length % 4 !== 0))
    isPadded ||= line.endsWith('=')
    return isFooter
  })
  const encoded = (end === -1 ? lines : lines.slice(0, end)).join('')
  // A text that is not encoded at all is returned as it is.
  if (encoded === '') return { bytes: body, isCut: false }
  // The body may join several encoded texts: each ends with its padding, and is decoded on its own.
  return {
    bytes: Buffer.concat(encoded.split(/=+/).map((text) => Buffer.from(text, 'base64'))),
    isCut: end !== -1,
  }
}

/** Joins the lines of paragraphs (RFC 3676). The signature's `-- ` is a line of its own. */
function unfold(text: string, deletesSpaces: boolean): string {
  const paragraphs: string[] = []
  let openQuotes: string | undefined
  for (const line of text.split(/(?<!\r)\r*\n/)) {
    const [, quotes = '', space = '', rest = ''] = /^(>*)( ?)(.*)/s.exec(line) ?? []
    const isSoft = rest.endsWith(' ') && rest !== '-- '
    const words = isSoft && deletesSpaces ? rest.slice(0, -1) : rest
    if (quotes === openQuotes && rest !== '-- ') paragraphs.push(`${paragraphs.pop()}${words}`)
    else paragraphs.push(quotes === '' ? words : `${quotes}${space}${words}`)
    openQuotes = isSoft ? quotes : undefined
  }
  return paragraphs.join('\n')
}
