// Converts a thread as it was read to requests that fit the bounds of the API.
import { type Limits, type QuoteRequest, ThreadRequestSchema } from '@sluice/contract'
import type { Note, Outgoing, UntitledRequest } from '../account/ledger.ts'
import type { QuoteInput } from '../formats/format.ts'
import { isNoDate, ZERO_DATES } from '../formats/values/iso-date.ts'
import { asName } from '../formats/values/typography.ts'
import type { ThreadInput } from '../gather/gather-threads.ts'
import { createSplitter } from './split-quotes.ts'
import { boundedId, cut, fits, split } from './texts.ts'

export type ShapeThread = ReturnType<typeof createShaper>

/**
 * Returns a function that shapes threads in their order.
 * @param idPrefix is put in front of each source's externalId.
 */
export function createShaper({ limits, idPrefix }: { limits: Limits; idPrefix: string }) {
  const splitQuotes = createSplitter(limits)
  const { quotes: ofQuotes, ...ofSource } = ThreadRequestSchema(limits).properties
  let ids: ThreadInput['ids']
  let conversation: Outgoing['conversation']
  return (thread: ThreadInput, note: Note) => {
    const dated = <Of extends Dated>(fields: Of) =>
      thread.isOwnForm ? fields : withoutZeroDate(fields, note)
    const named = (quote: QuoteInput) => (thread.isOwnForm ? quote : withPlainName(quote))
    const { placeholderTitle, ...fields } = dated(thread.fields)
    const externalId = shapeId(idPrefix + thread.externalId, note)
    const source = { service: thread.service, externalId, ...shapeFields(fields, ofSource, note) }
    const quotes: QuoteRequest[] = []
    for (const quote of thread.quotes)
      shapeQuote(named(dated(quote)), ofQuotes.items.properties, note, quotes)
    noteCopies(thread.service, quotes, note)
    for (let copy = 0; copy < (thread.copies ?? 0); copy++) note('skipped', COPIES)
    noteFuture(thread, note)
    const parts = splitQuotes(source, quotes, thread.isContinued === true, note)
    const requests = parts.map((part): UntitledRequest => ({ ...source, quotes: part }))
    // The parts of a large conversation share one array of ids, and must share one object.
    if (thread.ids !== ids) {
      ids = thread.ids
      conversation = ids && { ids: ids.map((id) => boundedId((idPrefix + id).toWellFormed())) }
    }
    return {
      requests,
      placeholderTitle: placeholderTitle && cut(placeholderTitle.toWellFormed(), limits.title),
      conversation,
    }
  }
}

const COPIES = 'copies of messages'

/** The API combines quotes of one id to one quote with the last text. */
function noteCopies(
  service: ThreadInput['service'],
  quotes: readonly QuoteRequest[],
  note: Note,
): void {
  const known = new Map<string, string>()
  // Mails are not edited. Two with one Message-ID have different texts if a mailing list changed one,
  // or if a program gives all its mails the same id.
  const others =
    service === 'email'
      ? 'texts of mails whose Message-ID a later mail has'
      : 'earlier versions of messages'
  for (const { externalId, text } of quotes) {
    if (!externalId) continue
    const before = known.get(externalId)
    if (before !== undefined) note('skipped', before === text ? COPIES : others)
    known.set(externalId, text)
  }
}

const TOMORROW = new Date(Date.now() + 86_400_000).toISOString()

/**
 * Notes dates in the future. A date that is mistyped, or of another calendar, would stay the newest
 * of its thread for centuries.
 */
function noteFuture({ fields, quotes }: ThreadInput, note: Note): void {
  const dated = quotes.some(({ createdAt }) => createdAt) ? quotes : [fields]
  for (const { createdAt } of dated)
    if (createdAt && createdAt > TOMORROW)
      note('doubtful', 'dates in the future, by more than a day')
}

type Dated = { createdAt?: string | null }

function withoutZeroDate<Of extends Dated>(fields: Of, note: Note): Of {
  if (!fields.createdAt || !isNoDate(fields.createdAt)) return fields
  note('skipped', ZERO_DATES)
  return { ...fields, createdAt: null }
}

/** A person has the same name in all exports, whatever marks a program adds to it. */
function withPlainName(quote: QuoteInput): QuoteInput {
  const speaker = quote.speaker && asName(quote.speaker)
  return speaker === quote.speaker ? quote : { ...quote, speaker: speaker ?? null }
}

/** The schemas of fields, by the fields' names. */
type Schemas = Readonly<Record<string, object>>

function limitOf(schemas: Schemas, name: string): number {
  const { maxLength = Number.POSITIVE_INFINITY }: { maxLength?: number } = schemas[name] ?? {}
  return maxLength
}

function shapeFields<T extends object>(fields: T, schemas: Schemas, note: Note): Partial<T> {
  const shaped = Object.entries(fields).flatMap(([name, value]) => {
    const kept = typeof value === 'string' ? shapeField(name, value, schemas, note) : value
    return kept === undefined || kept === null ? [] : [[name, kept]]
  })
  return Object.fromEntries(shaped)
}

function shapeField(name: string, value: string, schemas: Schemas, note: Note): string | undefined {
  if (value.trim() === '') return undefined
  if (name === 'externalId' || name === 'replyingTo') return shapeId(value, note)
  const text = wellFormed(value, note)
  const limit = limitOf(schemas, name)
  if (fits(text, limit)) return text
  // A cut URL would lead to another page.
  if (name === 'url') return void note('skipped', `URLs of more than ${limit} characters`)
  note('cut', `texts of the field ${name}, to ${limit} characters`)
  return cut(text, limit)
}

function shapeQuote(quote: QuoteInput, schemas: Schemas, note: Note, quotes: QuoteRequest[]): void {
  const { attachments, text, ...fields } = quote
  const shown = text.trim() === '' ? namesOfFiles(attachments, note) : wellFormed(text, note)
  if (text.trim() !== '')
    for (const _ of attachments ?? []) note('skipped', 'names of files beside a text')
  if (shown === undefined) return
  const [first = '', ...rest] = split(shown, limitOf(schemas, 'text'))
  const shaped = shapeFields(fields, schemas, note)
  quotes.push({ text: first, ...shaped })
  if (rest.length === 0) return
  note(
    'cut',
    `texts of more than ${limitOf(schemas, 'text')} characters, which go on in further quotes`,
  )
  // Votes belong to the whole message, so its first part has them.
  const { externalId, exportedId, upVotes, downVotes, score, ...common } = shaped
  for (const [index, part] of rest.entries()) {
    const id = externalId && { externalId: shapeId(`${quote.externalId}~${index + 2}`, note) }
    quotes.push({ text: part, ...id, ...common })
  }
}

function namesOfFiles(attachments: readonly string[] = [], note: Note): string | undefined {
  const names = attachments.filter((name) => name.trim() !== '')
  if (names.length === 0) return void note('skipped', 'messages with neither text nor files')
  note('replaced', 'messages without text, by the names of their files')
  return names.map((name) => `[file: ${name.toWellFormed()}]`).join('\n')
}

function shapeId(id: string, note: Note): string {
  const bounded = boundedId(wellFormed(id, note))
  if (bounded.length < id.length)
    note('cut', 'ids of more than 512 characters, which end in a digest')
  return bounded
}

function wellFormed(text: string, note: Note): string {
  if (text.isWellFormed()) return text
  note('replaced', 'lone surrogates, by U+FFFD')
  return text.toWellFormed()
}
