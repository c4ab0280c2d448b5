// Converts a mail to a message of its thread.
import PostalMime, { type Address, decodeWords, type Email } from 'postal-mime'
import type { FormatOptions, Found, Noted, Place, QuoteInput, SourceInput } from '../format.ts'
import { rejected, skipped } from '../format.ts'
import { digestOf } from '../values/digest.ts'
import { present } from '../values/record-fields.ts'
import { type DecodedMail, decodeParts } from './decode-parts.ts'
import { mailDate, separatorDate } from './mail-date.ts'
import { MAX_MAIL_BYTES, type RawMail } from './split-mbox.ts'

/** Prefixes of subjects, with counts such as `Re[2]:`, also after a mailing list's tag. */
const PREFIXES =
  /^(\s*\[[^\]]*\])?\s*((re|fwd?|aw|wg|antw|sv|回复|答复|转发)(\[\d+\]|\(\d+\))?\s*[:：]\s*)+/i

/** Reads a mail. Its Message-ID identifies it. */
export async function readMail(
  raw: RawMail,
  place: Place,
  options: FormatOptions,
): Promise<Found[]> {
  if (raw.isTooLong) return [reject(`a mail of more than ${MAX_MAIL_BYTES} bytes`, raw, place)]
  try {
    const { headers, text, notes } = decodeParts(raw.bytes)
    const mail = await PostalMime.parse(headers)
    return toFound({ ...mail, text }, raw, { place, options, notes })
  } catch (error) {
    return [reject(error instanceof Error ? error.message : String(error), raw, place)]
  }
}

interface Reading extends Pick<DecodedMail, 'notes'> {
  place: Place
  options: FormatOptions
}

function toFound(mail: Email, raw: RawMail, { place, options, notes: ofParts }: Reading): Found[] {
  if (!mail.from && !mail.date && !mail.messageId && mail.subject === undefined) {
    return [reject('no mail: it has no From, Date, Subject or Message-ID', raw, place)]
  }
  const reason = leftOutAs(mail)
  if (reason !== undefined) return [skipped(reason, place)]
  const full = textOf(mail)
  const text = options.stripQuotes ? withoutQuotes(full) : full
  const quote = toQuote(mail, text, full, raw.separator)
  const isEmpty = text === '' && quote.attachments === undefined
  const notes = [...ofParts.map((note) => ({ ...note, place })), ...notesOn(mail, quote, place)]
  if (isEmpty) notes.push(skipped('mails with neither text nor files', place))
  const piece: Found = {
    kind: 'piece',
    service: 'email',
    externalId: quote.externalId,
    references: referencesOf(mail).filter((id) => id !== quote.externalId),
    order: quote.createdAt ?? '',
    fields: toFields(mail, quote),
    // Keep an empty mail, because it connects the mails before it with those after it.
    quotes: isEmpty ? [] : [quote],
    place,
  }
  if (text !== full) notes.push({ kind: 'cut', reason: 'texts that quoted other mails', place })
  return [piece, ...notes]
}

function notesOn(mail: Email, { createdAt, text }: QuoteInput, place: Place): Noted[] {
  const isLost = text.includes('\uFFFD') || mail.subject?.includes('\uFFFD')
  const lost: Noted[] = isLost ? [{ kind: 'replaced', reason: LOST, place }] : []
  return [...lost, ...notesOnDate(mail, createdAt, place)]
}

const LOST = 'texts with characters that were lost (U+FFFD)'

function notesOnDate(mail: Email, createdAt: QuoteInput['createdAt'], place: Place): Noted[] {
  const date = headerOf(mail, 'date')
  if (!date || mailDate(date) !== undefined) return []
  const reason = 'Date headers without a date'
  if (createdAt === undefined) return [skipped(reason, place)]
  return [{ kind: 'replaced', reason: `${reason}, by the date of the mbox`, place }]
}

/** If References is missing, In-Reply-To counts (RFC 5256). */
function referencesOf(mail: Email): string[] {
  const references = idsIn(mail.references)
  if (references.length > 0) return references
  const parent = parentOf(mail)
  return parent === undefined ? [] : [parent]
}

/**
 * Matches the beginning of a sentence such as `Message from Bo <bo@a.example> of Monday
 * <id@a.example>`.
 */
const PERSON = /^\s*[^\s<][^<]*<[^<>]+>(?=[\s,]*[^\s<,][^<]*<)/

/** Ignores addresses: they would join all mails that answer the same person. */
function parentOf({ inReplyTo, from, to = [], cc = [] }: Email): string | undefined {
  if (!inReplyTo) return undefined
  const addresses = new Set([from, ...to, ...cc].map((one) => one?.address))
  return idsIn(inReplyTo.replace(PERSON, '')).find((id) => !addresses.has(id))
}

/** The names of Gmail's labels for deleted mails and for spam, in all languages of its exports. */
const TRASH =
  'trash,bin,papierkorb,corbeille,papelera,paperera,lixeira,lixo,cestino,prullenbak,papirkurv,papperskorgen,roskakori,kosz,koš,kôš,kuka,корзина,кошик,çöp kutusu,coș de gunoi,ゴミ箱,휴지통,已删除邮件,垃圾桶'.split(
    ',',
  )
const SPAM =
  'spam,correo no deseado,correu brossa,posta indesiderata,спам,迷惑メール,스팸함,垃圾邮件,垃圾郵件'.split(
    ',',
  )

/**
 * Returns why a mail is left out, or undefined. Until a mailbox is compacted, Mozilla marks a
 * deleted mail by a flag, and mutt and pine by a letter. The export of a whole Gmail account
 * contains deleted mails and spam.
 */
function leftOutAs(mail: Email): string | undefined {
  const mozilla = Number.parseInt(headerOf(mail, 'x-mozilla-status') ?? '0', 16)
  const labels = decodeWords(headerOf(mail, 'x-gmail-labels') ?? '')
    .replaceAll('"', '')
    .toLowerCase()
    .split(',')
    .map((label) => label.trim())
  const isMarked = (mozilla & 0x0008) !== 0 || (headerOf(mail, 'x-status') ?? '').includes('D')
  if (isMarked || labels.some((label) => TRASH.includes(label))) return 'mails that were deleted'
  return labels.some((label) => SPAM.includes(label))
    ? 'mails with the label of Gmail for spam'
    : undefined
}

function headerOf(mail: Email, key: string): string | undefined {
  return mail.headers.find((header) => header.key === key)?.value
}

/** Not by `replaceAll`, which takes more time and memory for a text of many lines. */
function textOf({ text = '' }: Email): string {
  return text.split('\r\n').join('\n').trim()
}

function toQuote(
  mail: Email,
  text: string,
  full: string,
  separator?: string,
): QuoteInput & { externalId: string } {
  const speaker = speakerOf(mail)
  const createdAt =
    mailDate(headerOf(mail, 'date')) ?? deliveryDate(mail) ?? separatorDate(separator)
  const attachments = mail.attachments.map((one) => one.filename ?? one.mimeType)
  const externalId = idsIn(mail.messageId)[0] ?? idOfContent(mail, full || attachments.join('\0'))
  const parent = parentOf(mail) ?? idsIn(mail.references).at(-1)
  const replyingTo = parent === externalId ? undefined : parent
  return { externalId, text, ...present({ createdAt, speaker, replyingTo, attachments }) }
}

/** Not read from the separator, into which Thunderbird writes the time of an import. */
function deliveryDate(mail: Email): string | undefined {
  return mailDate(headerOf(mail, 'received')?.split(';').at(-1))
}

/** Makes an id for a mail without a Message-ID, from what its reader sees. */
function idOfContent(mail: Email, text: string): string {
  const content = [mail.from?.address, headerOf(mail, 'date'), mail.subject, text].join('\0')
  return `sha256-${digestOf(content)}`
}

/** Matches an id, even if a program has left out one bracket or both. */
const ID = /^<?[^<>@]+@[^<>]+>?$/

/** Returns ids without brackets. Old programs wrote a sentence with an id into In-Reply-To. */
function idsIn(header = ''): string[] {
  const words = header
    .replaceAll('><', '> <')
    .split(/[\s,]+/)
    .filter(Boolean)
  const isList =
    words.every((word) => ID.test(word)) || (words.length === 1 && !header.includes('<'))
  const ids = isList ? words : Array.from(header.matchAll(/<[^<>]+>/g), ([id]) => id)
  return ids.map((id) => id.replace(/[<>\s]/g, '')).filter(Boolean)
}

/** Matches a sender in the old form, also in Mailman's archives: `ada at a.example (Ada Baker)`. */
const ARCHIVED = /^(?:[^\s@]+@|\S+ at )[^\s@]+\s+\((.+)\)\s*$/

function speakerOf(mail: Email): string | undefined {
  const [, archived = ''] = ARCHIVED.exec(headerOf(mail, 'from') ?? '') ?? []
  const name =
    decodeWords(archived).trim() || unquotedName(mail) || nameOf(mail.from) || nameOf(mail.sender)
  return name?.replaceAll(/\\(?=[()"\\])/g, '')
}

/**
 * Matches `Baker, Ada <ada@a.example>`, whose name should be in quotation marks: the text before
 * the comma is not an address.
 */
const UNQUOTED = /^\s*([^\s"<>@:,][^"<>@:,]*,[^"<>@:,]+)<[^<>]+>\s*$/

function unquotedName(mail: Email): string | undefined {
  const from = headerOf(mail, 'from')
  const [, name = ''] = (from?.includes(',') && UNQUOTED.exec(from)) || []
  return name && decodeWords(name.trim())
}

function nameOf(address: Address | undefined): string | undefined {
  return address?.name.trim() || address?.address || undefined
}

function toFields(mail: Email, { createdAt }: QuoteInput): SourceInput {
  const subject = mail.subject?.replaceAll('\t', ' ').replace(PREFIXES, '$1 ').trim()
  // Mailing lists put their tag between prefixes: `Re: [bakers] Re: Oven`.
  const title = subject?.replace(PREFIXES, '$1 ').trim()
  return {
    placeholderTitle: title || 'Mail without a subject',
    ...present({ title: title || undefined, createdAt }),
  }
}

/** The file of rejected records contains at most this number of bytes of a mail. */
const KEPT_BYTES = 1024 * 1024

function reject(reason: string, raw: RawMail, place: Place): Found {
  const isCut = raw.isTooLong || raw.bytes.length > KEPT_BYTES
  return rejected(
    isCut ? `${reason} (its record is cut)` : reason,
    place,
    raw.bytes.toString('utf8', 0, KEPT_BYTES),
  )
}

/** Matches "On Monday, Ada wrote:", in the languages of common programs. */
const ATTRIBUTION =
  /^.{0,300}(?<!\p{L})(wrote|writes|schrieb|écrit|escribió|escreveu|scritto|schreef|skrev|napisał\(a\)|napsal|написал)(?!\p{L}).{0,100}:\s*$/iu
const ATTRIBUTION_LINES = 3
const BEGINNING = /^\s*(on|am|le|el|em|il|op|den|dne)\b/i
/** Matches the line that Outlook writes between an answer and the complete mail that it answers. */
const ORIGINAL =
  /^\s*-{2,} ?(original message|ursprüngliche nachricht|message d'origine|mensaje original|messaggio originale) ?-{2,}\s*$/i

/**
 * Removes lines that begin with `>`, the line above them that names their author, and a quoted
 * original at the end, unless nothing else remains.
 */
function withoutQuotes(text: string): string {
  const kept: string[] = []
  // Search once for each quote. A search for each of its lines would take time with the square of
  // their number.
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

/** There may be blank lines between a quote and the line above it that names its author. */
function removeAttribution(lines: string[]) {
  const last = lines.findLastIndex((line) => line.trim() !== '')
  if (!lines[last]?.trimEnd().endsWith(':')) return
  for (let start = Math.max(0, last - ATTRIBUTION_LINES + 1); start <= last; start++) {
    const isWhole = start === last || BEGINNING.test(lines[start] ?? '')
    if (isWhole && ATTRIBUTION.test(lines.slice(start, last + 1).join(' '))) lines.splice(start)
  }
}
