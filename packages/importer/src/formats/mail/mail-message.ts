// Turns one mail into a message of its thread.
import PostalMime, { type Address, type Email } from 'postal-mime'
import type { FormatOptions, Found, Noted, Place, QuoteInput, SourceFields } from '../format.ts'
import { rejected, skipped } from '../format.ts'
import { digestOf } from '../values/digest.ts'
import { htmlToText } from '../values/html-text.ts'
import { isoDateIn } from '../values/iso-date.ts'
import { present } from '../values/record-fields.ts'
import { MAX_MAIL_BYTES, type RawMail } from './split-mbox.ts'

/** Matches the prefixes of common programs, with counts such as `Re[2]:`, also behind the tag of a mailing list. */
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

/** Encodes a body of one part as one line of base64: postal-mime makes a Blob of each line, which takes 10 µs. */
function encodeBody(mail: Buffer): Buffer {
  const end = endOfHeader(mail)
  const header = mail.toString('latin1', 0, end)
  // RFC 2045 reads a multipart mail without boundary as text, postal-mime as empty. The first of two headers counts.
  if (/^content-type:\s*multipart\//im.test(header) && !/boundary/i.test(header))
    return Buffer.concat([Buffer.from('Content-Type: text/plain\n'), mail])
  if (end === -1 || MULTIPART.test(header) || ENCODED.test(header)) return mail
  return Buffer.from(`Content-Transfer-Encoding: base64\n${header}\n\n${mail.toString('base64', end)}`, 'latin1')
}

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
    // An empty mail still connects the mails before it with those after it.
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

/** Matches `2024`, `1 May 24` and `5/1/24`, and not the zone `+0000`. */
const YEAR = /(?<![\s\d][+-])\b\d{4}\b|\b\d{1,2}[ -][a-z]{3,}[ -]\d{2}\b(?!:)|\d\/\d{1,2}\/\d/i

/** Matches `+0200` or `EST` behind a time. */
const ZONE = /:\d\d.*(?:[+-]\d\d:?\d\d|\b(?![AP]M\b)[A-Z]{1,4}\b)/i

/** A longer header is no date. The time of the search for a zone grows with the square of its length. */
const DATE_CHARACTERS = 200

/** A date without a year is none, although JavaScript would add one. A date without a zone is in UTC. */
function dateOf(mail: Email): string | undefined {
  const date = headerOf(mail, 'date') ?? ''
  if (date.length > DATE_CHARACTERS || !YEAR.test(date)) return undefined
  return (ZONE.test(date) ? undefined : isoDateIn(`${date} UTC`)) ?? isoDateIn(date)
}

const ENVELOPE_DATE =
  / ([A-Z][a-z]{2}) +(\d{1,2}) +(\d{1,2}:\d{2}(?::\d{2})?) +(?:[A-Z]{1,5} +|([+-]\d{4}) +)?(\d{4})(?: +([+-]\d{4}))?/

/** Returns the date in a separator of an mbox. Without a zone, it is in UTC (RFC 4155). */
function envelopeDate(separator = ''): string | undefined {
  const [, month, day, time, zone, year, last] = ENVELOPE_DATE.exec(separator) ?? []
  return isoDateIn(month && `${day} ${month} ${year} ${time} ${zone ?? last ?? 'UTC'}`)
}

/** Returns the ids before a mail. Without References, the first id of In-Reply-To counts (RFC 5256). */
function referencesOf(mail: Email): string[] {
  const references = idsIn(mail.references)
  return references.length > 0 ? references : idsIn(mail.inReplyTo).slice(0, 1)
}

/** Until a mailbox is compacted, Mozilla marks a deleted mail by a flag, mutt and pine by a letter. */
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

/** Identifies a mail without a Message-ID by what its reader sees. */
function idOfContent(mail: Email, text: string): string {
  const content = [mail.from?.address, headerOf(mail, 'date'), mail.subject, text].join('\0')
  return `sha256-${digestOf(content)}`
}

/** Returns the ids in a header, without brackets. Old programs wrote a sentence with an id into In-Reply-To. */
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

/** The file of rejected records has at most this much of a mail. */
const KEPT_BYTES = 1024 * 1024

function reject(reason: string, raw: RawMail, place: Place): Found {
  const isCut = raw.isTooLong || raw.bytes.length > KEPT_BYTES
  return rejected(isCut ? `${reason} (its record is cut)` : reason, place, raw.bytes.toString('utf8', 0, KEPT_BYTES))
}

/** Matches "On Monday, Ada wrote:" in the languages of common programs. */
const ATTRIBUTION =
  /^.{0,300}(?<!\p{L})(wrote|writes|schrieb|écrit|escribió|escreveu|scritto|schreef|skrev|napisał\(a\)|napsal|написал)(?!\p{L}).{0,100}:\s*$/iu
const ATTRIBUTION_LINES = 3
const BEGINNING = /^\s*(on|am|le|el|em|il|op|den|dne)\b/i
/** Matches what Outlook writes between an answer and the whole mail that it answers. */
const ORIGINAL =
  /^\s*-{2,} ?(original message|ursprüngliche nachricht|message d'origine|mensaje original|messaggio originale) ?-{2,}\s*$/i

/** Removes lines that begin with `>`, their attribution, and an original at the end, unless nothing else remains. */
function withoutQuotes(text: string): string {
  const kept: string[] = []
  // Searched once for each quote. Once for each of its lines would take the square of their number.
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

/** Removes the attribution directly above a quote. Blank lines may stand between them. */
function removeAttribution(lines: string[]) {
  const last = lines.findLastIndex((line) => line.trim() !== '')
  if (!lines[last]?.trimEnd().endsWith(':')) return
  for (let start = Math.max(0, last - ATTRIBUTION_LINES + 1); start <= last; start++) {
    const isWhole = start === last || BEGINNING.test(lines[start] ?? '')
    if (isWhole && ATTRIBUTION.test(lines.slice(start, last + 1).join(' '))) lines.splice(start)
  }
}
