// Shapes a thread as it was read into requests that fit the bounds of the API.
import type { Limits, QuoteRequest } from '@sluice/contract'
import type { QuoteInput, SourceFields } from '@sluice/formats'
import type { ThreadInput } from '../gather/gather-threads.ts'
import type { Note, UntitledRequest } from './sink.ts'
import { createSplitter } from './split-quotes.ts'
import { boundedId, cut, fits, split } from './texts.ts'

export interface ShapedThread {
  /** One, or several parts with the same fields. */
  requests: UntitledRequest[]
  /** The title, if the requests have none and none is stored. */
  placeholderTitle?: string
}

interface ShapeOptions {
  limits: Limits
  /** Stands before the externalId of each source. */
  idPrefix: string
}

/** A function that shapes threads, in the order in which they were read. */
export type ShapeThread = (thread: ThreadInput, note: Note) => ShapedThread

/** Remembers the parts of a thread that comes in pieces: see `createSplitter`. */
export function createShaper({ limits, idPrefix }: ShapeOptions): ShapeThread {
  const splitter = createSplitter(limits)
  return (thread, note) => {
    const { placeholderTitle, ...fields } = thread.fields
    const source = {
      service: thread.service,
      externalId: shapeId(idPrefix + thread.externalId, note),
      ...shapeFields(fields, limits, note),
    }
    const quotes: QuoteRequest[] = []
    for (const quote of thread.quotes) shapeQuote(quote, limits, note, quotes)
    const parts = splitter.split(source, quotes, thread.isContinued, note)
    const requests = parts.map((part) => ({ ...source, quotes: part }))
    if (source.title !== undefined || placeholderTitle === undefined) return { requests }
    return { requests, placeholderTitle: cut(placeholderTitle.toWellFormed(), limits.title) }
  }
}

type Fields = Omit<SourceFields, 'placeholderTitle'>

function shapeFields(fields: Fields, limits: Limits, note: Note): Fields {
  const shaped: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === undefined) continue
    const kept = typeof value === 'string' ? shapeField(name, value, limits, note) : value
    if (kept !== undefined) shaped[name] = kept
  }
  return shaped
}

function shapeField(name: string, value: string, limits: Limits, note: Note): string | undefined {
  if (value.trim() === '') return undefined
  const text = wellFormed(value, note)
  const limit = limitOf(name, limits)
  if (fits(text, limit)) return text
  // A URL that is cut leads elsewhere, and a date is short.
  if (name === 'url') return void note('skipped', `URLs of more than ${limit} characters`)
  note('cut', `texts of the field ${name}, to ${limit} characters`)
  return cut(text, limit)
}

function limitOf(name: string, limits: Limits): number {
  if (name === 'title' || name === 'description' || name === 'url') return limits[name]
  return limits.string
}

/** Whether the quote can be sent as it is, which nearly every one can. */
function isFit(quote: QuoteInput, limits: Limits): boolean {
  const { text, attachments, externalId, replyingTo, speaker, username } = quote
  return (
    attachments === undefined &&
    typeof text === 'string' &&
    text.trim() !== '' &&
    isShort(text, limits.text) &&
    isShort(externalId, limits.externalId) &&
    isShort(replyingTo, limits.externalId) &&
    isShort(speaker, limits.string) &&
    isShort(username, limits.string)
  )
}

function isShort(text: string | null | undefined, limit: number): boolean {
  if (text === undefined || text === null) return true
  return typeof text === 'string' && text.length <= limit && text.isWellFormed()
}

function shapeQuote(quote: QuoteInput, limits: Limits, note: Note, quotes: QuoteRequest[]): void {
  if (isFit(quote, limits)) return void quotes.push(quote)
  const { attachments, text, externalId, replyingTo, speaker, username, ...others } = quote
  const shown = shapeText(text, attachments, note)
  if (shown === undefined) return
  const common = {
    ...(speaker && { speaker: shapeName(speaker, limits, note) }),
    ...(username && { username: shapeName(username, limits, note) }),
    ...(replyingTo && { replyingTo: shapeId(replyingTo, note) }),
    ...(others.createdAt && { createdAt: others.createdAt }),
  }
  const id = externalId ? { externalId: shapeId(externalId, note) } : {}
  if (typeof shown !== 'string' || fits(shown, limits.text)) {
    quotes.push({ text: shown, ...id, ...others, ...common })
    return
  }
  note('cut', `texts of more than ${limits.text} characters, which go on in further quotes`)
  const [first = '', ...rest] = split(shown, limits.text)
  quotes.push({ text: first, ...id, ...others, ...common })
  // Votes belong to the whole message, so its first quote has them.
  for (const [index, part] of rest.entries()) {
    quotes.push({
      text: part,
      ...(externalId && { externalId: shapeId(`${externalId}~${index + 2}`, note) }),
      ...common,
    })
  }
}

function shapeText(text: string, attachments: readonly string[] = [], note: Note): string | undefined {
  // A value of another type than the format promises is for the API to refuse.
  if (typeof text === 'string' ? text.trim() !== '' : text)
    return typeof text === 'string' ? wellFormed(text, note) : text
  const names = attachments.filter((name) => name.trim() !== '')
  if (names.length === 0) return void note('skipped', 'messages with neither text nor files')
  note('replaced', 'messages without text, by the names of their files')
  return names.map((name) => `[file: ${name.toWellFormed()}]`).join('\n')
}

function shapeName(name: string, limits: Limits, note: Note): string {
  if (typeof name !== 'string') return name
  const text = wellFormed(name, note)
  if (fits(text, limits.string)) return text
  note('cut', `texts of the field speaker, to ${limits.string} characters`)
  return cut(text, limits.string)
}

function shapeId(id: string, note: Note): string {
  if (typeof id !== 'string') return id
  const bounded = boundedId(wellFormed(id, note))
  if (bounded.length < id.length) note('cut', 'ids of more than 512 characters, which end in a digest')
  return bounded
}

function wellFormed(text: string, note: Note): string {
  if (text.isWellFormed()) return text
  note('replaced', 'lone surrogates, by U+FFFD')
  return text.toWellFormed()
}
