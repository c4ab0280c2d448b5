// Makes quotes of the comments of Zendesk tickets.
import { parseIsoDate } from '@sluice/contract'
import type { FormatOptions, Noted, Place, QuoteInput } from '../format.ts'
import { htmlToText } from '../values/html-text.ts'
import { isoDateOfMillis } from '../values/iso-date.ts'
import { asId, asNumber, asObject, asObjects, asText, type JsonObject, present } from '../values/record-fields.ts'
import type { Survey } from './survey.ts'

const COMMENT_TYPES = new Set(['Comment', 'VoiceComment'])

/** The quotes of comments, and notes of those that are not sent. */
export interface ReadComments {
  quotes: QuoteInput[]
  notes: Noted[]
}

export function readComments(
  comments: readonly JsonObject[],
  place: Place,
  { names }: Survey,
  { internalNotes }: FormatOptions,
): ReadComments {
  const quotes: QuoteInput[] = []
  const notes: Noted[] = []
  const skip = (reason: string) => notes.push({ kind: 'skipped', reason, place })
  for (const comment of comments) {
    const quote = toQuote(comment, names)
    if (comment.public === false && !internalNotes) skip('internal notes (take them with --internal-notes)')
    else if (quote) quotes.push(quote)
    else skip('comments without text')
  }
  return { quotes, notes }
}

function toQuote(comment: JsonObject, names: Survey['names']): QuoteInput | undefined {
  const text = textOf(comment)
  const attachments = asObjects(comment.attachments).flatMap(({ file_name }) => asText(file_name) ?? [])
  if (text === undefined && attachments.length === 0) return undefined
  const fields = { externalId: asId(comment.id), speaker: speakerOf(comment, names), createdAt: dateOf(comment) }
  return { text: text ?? '', ...present(fields), ...(attachments.length > 0 && { attachments }) }
}

/**
 * The comments of an event of `ticket_events`, or of a ticket's audit. The event has the fields that its comments lack. Only exports with
 * `include=comment_events` have the texts.
 */
export function commentsIn({
  child_events,
  events,
  updater_id,
  author_id,
  timestamp,
  created_at,
}: JsonObject): JsonObject[] {
  return asObjects(child_events ?? events)
    .filter(({ type, event_type }) => COMMENT_TYPES.has(String(event_type ?? type)))
    .map((comment) => ({ author_id: updater_id ?? author_id, timestamp, created_at, ...comment }))
}

function textOf({ html_body, plain_body, body }: JsonObject): string | undefined {
  const html = asText(html_body)
  return (html && asText(htmlToText(html))) ?? asText(plain_body) ?? asText(body)
}

function speakerOf({ author_id, via }: JsonObject, names: Survey['names']): string | undefined {
  const id = asId(author_id)
  const from = asObject(asObject(asObject(via)?.source)?.from)
  return (id && names.get(id)) ?? asText(from?.name) ?? id
}

export function dateOf({ created_at, timestamp }: JsonObject): string | undefined {
  const seconds = asNumber(timestamp)
  const millis = seconds === undefined ? undefined : seconds * 1_000
  return parseIsoDate(asText(created_at) ?? '') ?? isoDateOfMillis(millis)
}
