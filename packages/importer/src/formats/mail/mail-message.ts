// Turns one mail into a message of its thread.
import { hash } from 'node:crypto'
import PostalMime, { type Address, type Email } from 'postal-mime'
import type { FormatOptions, Found, Noted, Place, QuoteInput, SourceFields } from '../format.ts'
import { rejected, skipped } from '../format.ts'
import { htmlToText } from '../values/html-text.ts'
import { isoDateIn } from '../values/iso-date.ts'
import { present } from '../values/record-fields.ts'
import { MAX_MAIL_BYTES, type RawMail } from './split-mbox.ts'

/** The prefixes of common programs, with counts such as `Re[2]:`, before or behind the tag of a list. */
const PREFIXES = /^(\s*\[[^\]]*\])?\s*((re|fwd?|aw|wg|antw|sv|回复|答复|转发)(\[\d+\]|\(\d+\))?\s*[:：]\s*)+/i

const MULTIPART = /^content-type:\s*(multipart|message)\//im
const ENCODED = /^content-transfer-encoding:\s*(?!7bit|8bit|binary)\S/im

/** Reads one mail, identified by its Message-ID. */
export async function readMail(raw: RawMail, place: Place, options: FormatOptions): Promise<Found[]> {
  if (raw.isTooLong) return [reject(`a mail of more than ${MAX_MAIL_BYTES} bytes`, raw, place)]
  try {
    const mail = await PostalMime.parse(encodeBody(raw.bytes))
    return toFound(mail, raw, place, options)
  } catch (error) {
    return [reject(error instanceof Error ? error.message : String(error), raw, place)]
  }
}

/**
 * Returns the mail with its body as one line of base64, if the body has one part and is not encoded. postal-mime makes
 * a Blob of all lines of such a body, and Node needs some 10 µs for each: most of the time of reading a mailing list.
 */
function encodeBody(mail: Buffer): Buffer {
  const end = endOfHeader(mail)
  const header = mail.toString('latin1', 0, end)
  // RFC 2045 has such a mail as plain text, and postal-mime as empty. Of two headers, here and below, the first counts.
  if (/^content-type:\s*multipart\//im.test(header) && !/boundary/i.test(header))
    return Buffer.concat([Buffer.from('Content-Type: text/plain\n'), mail])
  if (end === -1 || MULTIPART.test(header) || ENCODED.test(header)) return mail
  return Buffer.from(`Content-Transfer-Encoding: base64\n${header}\n\n${mail.toString('base64', end)}`, 'latin1')
}

/** Returns where the blank line behind the header begins, or -1. */
function endOfHeader(mail: Buffer): number {
  const ends = [mail.indexOf('\n\n'), mail.indexOf('\n\r\n')].filter((end) => end !== -1)
  return ends.length > 0 ? Math.min(...ends) + 1 : -1
}

function toFound(mail: Email, raw: RawMail, place: Place, options: FormatOptions): Found[] {
  if (!mail.from && !mail.date && !mail.messageId && mail.subject === undefined) {
    return [reject('no mail: it has no From, Date, Subject or Message-ID', raw, place)]
  }
  if (isDeleted(mail)) return [skipped('mails that were deleted', place)]
  const full = textOf(mail)
  const text = options.stripQuotes ? withoutQuotes(full) : full
  const quote = toQuote(mail, text, full, raw.separator)
  const isEmpty = text === '' && quote.attachments === undefined
  const notes = notesOn(mail, quote, place)
  if (isEmpty) notes.push(skipped('mails with neither text nor files', place))
  const piece: Found = {
    kind: 'piece',
    service: 'email',
    externalId: quote.externalId,
    references: referencesOf(mail).filter((id) => id !== quote.externalId),
    order: quote.createdAt ?? '',
    fields: toFields(mail, quote),
    // An empty mail still connects the mails before and behind it.
    quotes: isEmpty ? [] : [quote],
    place,
  }
  if (text !== full) notes.push({ kind: 'cut', reason: 'texts that quoted other mails', place })
  return [piece, ...notes]
}

function notesOn(mail: Email, { createdAt }: QuoteInput, place: Place): Noted[] {
  if (!mail.date || dateOf(mail) !== undefined) return []
  const reason = 'Date headers without a date'
  if (createdAt === undefined) return [skipped(reason, place)]
  return [{ kind: 'replaced', reason: `${reason}, by the date of the mbox`, place }]
}

/** `2024`, `1 May 24` or `5/1/24`, but not the zone `+0000`. */
const YEAR = /(?<![\s\d][+-])\b\d{4}\b|\b\d{1,2}[ -][a-z]{3,}[ -]\d{2}\b(?!:)|\d\/\d{1,2}\/\d/i

/** `+0200` or `EST` behind a time. */
const ZONE = /:\d\d.*(?:[+-]\d\d:?\d\d|\b(?![AP]M\b)[A-Z]{1,4}\b)/i

/** A longer header is no date. The search for a zone takes the square of its length. */
const DATE_CHARACTERS = 200

/** JavaScript reads a date without a year as one of 2001, and one without a zone as that of the machine: it is UTC. */
function dateOf(mail: Email): string | undefined {
  const date = headerOf(mail, 'date') ?? ''
  if (date.length > DATE_CHARACTERS || !YEAR.test(date)) return undefined
  return (ZONE.test(date) ? undefined : isoDateIn(`${date} UTC`)) ?? isoDateIn(date)
}

const ENVELOPE_DATE =
  / ([A-Z][a-z]{2}) +(\d{1,2}) +(\d{1,2}:\d{2}(?::\d{2})?) +(?:[A-Z]{1,5} +|([+-]\d{4}) +)?(\d{4})(?: +([+-]\d{4}))?/

/** The date of a separator of an mbox. Without a zone, it counts as UTC, as RFC 4155 has it. */
function envelopeDate(separator = ''): string | undefined {
  const [, month, day, time, zone, year, last] = ENVELOPE_DATE.exec(separator) ?? []
  return isoDateIn(month && `${day} ${month} ${year} ${time} ${zone ?? last ?? 'UTC'}`)
}

/** In-Reply-To counts only without References, and then its first id, as RFC 5256 has it. */
function referencesOf(mail: Email): string[] {
  const references = idsIn(mail.references)
  return references.length > 0 ? references : idsIn(mail.inReplyTo).slice(0, 1)
}

/** Mailboxes mark deleted mails until they are compacted: Mozilla with a flag, mutt and pine with a letter. */
function isDeleted(mail: Email): boolean {
  const mozilla = Number.parseInt(headerOf(mail, 'x-mozilla-status') ?? '0', 16)
  return (mozilla & 0x0008) !== 0 || (headerOf(mail, 'x-status') ?? '').includes('D')
}

function headerOf(mail: Email, key: string): string | undefined {
  return mail.headers.find((header) => header.key === key)?.value
}

function textOf(mail: Email): string {
  const text = mail.text?.trim() ? mail.text : htmlToText(mail.html ?? '')
  return text.replaceAll('\r\n', '\n').trim()
}

function toQuote(mail: Email, text: string, full: string, separator?: string): QuoteInput & { externalId: string } {
  const speaker = nameOf(mail.from) ?? nameOf(mail.sender)
  const createdAt = dateOf(mail) ?? envelopeDate(separator)
  const externalId = idsIn(mail.messageId)[0] ?? mail.messageId?.trim() ?? idOfContent(mail, full)
  const parent = idsIn(mail.inReplyTo)[0] ?? idsIn(mail.references).at(-1)
  const replyingTo = parent === externalId ? undefined : parent
  const attachments = mail.attachments.filter(({ related }) => !related).map((one) => one.filename ?? one.mimeType)
  return { externalId, text, ...present({ createdAt, speaker, replyingTo, attachments }) }
}

/** A mail without a Message-ID is identified by what the reader sees of it. */
function idOfContent(mail: Email, text: string): string {
  const content = [mail.from?.address, headerOf(mail, 'date'), mail.subject, text].join('\0')
  return `sha256-${hash('sha256', content, 'base64url')}`
}

/** The ids in a header, without their brackets. In-Reply-To of old programs is a sentence with an id in it. */
function idsIn(header: string | undefined): string[] {
  return Array.from(header?.matchAll(/<([^<>]+)>/g) ?? [], ([, id]) => id?.replace(/\s/g, '') ?? '').filter(Boolean)
}

function nameOf(address: Address | undefined): string | undefined {
  return address?.name.trim() || address?.address || undefined
}

function toFields(mail: Email, { createdAt }: QuoteInput): SourceFields {
  const title = mail.subject?.replaceAll('\t', ' ').replace(PREFIXES, '$1 ').trim()
  return { placeholderTitle: title || 'Mail without a subject', ...present({ title: title || undefined, createdAt }) }
}

/** Of a mail that is rejected. */
const KEPT_BYTES = 1024 * 1024

function reject(reason: string, raw: RawMail, place: Place): Found {
  const isCut = raw.isTooLong || raw.bytes.length > KEPT_BYTES
  return rejected(isCut ? `${reason} (its record is cut)` : reason, place, raw.bytes.toString('utf8', 0, KEPT_BYTES))
}

/** "On Monday, Ada wrote:", in the languages of common programs. It may go on for three lines. */
const ATTRIBUTION =
  /^.{0,300}(?<!\p{L})(wrote|writes|schrieb|écrit|escribió|escreveu|scritto|schreef|skrev|napisał\(a\)|napsal|написал)(?!\p{L}).{0,100}:\s*$/iu
const ATTRIBUTION_LINES = 3
const BEGINNING = /^\s*(on|am|le|el|em|il|op|den|dne)\b/i
/** What Outlook puts above the whole of the mail that it answers. */
const ORIGINAL =
  /^\s*-{2,} ?(original message|ursprüngliche nachricht|message d'origine|mensaje original|messaggio originale) ?-{2,}\s*$/i

/**
 * Returns the text without lines that begin with `>`, without the line that introduces them, and without an original
 * below the text. A text that is nothing but quotes stays.
 */
function withoutQuotes(text: string): string {
  const kept: string[] = []
  // Until the next line of the mail's own, no second look at the lines above: it would take the square of their number.
  let isBehindQuote = false
  for (const line of text.split('\n')) {
    if (ORIGINAL.test(line)) break
    if (!line.startsWith('>')) {
      kept.push(line)
      if (line.trim() !== '') isBehindQuote = false
    } else if (!isBehindQuote) {
      removeAttribution(kept)
      isBehindQuote = true
    }
  }
  const rest = kept.join('\n').replace(/\n{3,}/g, '\n\n')
  return rest.trim() || text
}

/** Removes the attribution that stands directly above a quote, blank lines aside. */
function removeAttribution(lines: string[]) {
  const last = lines.findLastIndex((line) => line.trim() !== '')
  if (!lines[last]?.trimEnd().endsWith(':')) return
  for (let start = Math.max(0, last - ATTRIBUTION_LINES + 1); start <= last; start++) {
    const isWhole = start === last || BEGINNING.test(lines[start] ?? '')
    if (isWhole && ATTRIBUTION.test(lines.slice(start, last + 1).join(' '))) lines.splice(start)
  }
}
