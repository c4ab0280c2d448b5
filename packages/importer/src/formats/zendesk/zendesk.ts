// Reads Zendesk's tickets with their comments, from the API, from its incremental exports, and from
// an account's JSON export.
import type { Format, FormatOptions, Found, Noted, Piece, Place, QuoteInput } from '../format.ts'
import { ownsFolder, piecesOf, rejected, skipped } from '../format.ts'
import { byShape, type JsonShape, jsonShape } from '../read/json-beginning.ts'
import { htmlToText } from '../values/html-text.ts'
import { asIsoDate, isoDateOf } from '../values/iso-date.ts'
import {
  asId,
  asNumber,
  asObject,
  asObjects,
  asText,
  asTexts,
  type JsonObject,
  present,
} from '../values/record-fields.ts'
import { readRecords, type Survey, surveyExport, type ZendeskRecord } from './records.ts'

const piece = piecesOf('zendesk', (id) => ({ placeholderTitle: `Ticket #${id}` }))
const COMMENT_TYPES = new Set(['Comment', 'VoiceComment', 'FacebookComment', 'LogMeInTranscript'])
const CHATS = 'chats within events, apart from what Zendesk repeats as comments'
/** The author of what Zendesk itself writes, for example about a call. */
const OF_ZENDESK = '-1'
const NO_COMMENTS =
  'tickets whose comments are not in the input (export ticket_events with include=comment_events, too)'
const DESCRIPTION = 'descriptions of tickets without comments'
/** For a redacted text: a block for each character, or one word for the whole. */
const REDACTED = /^(?:(?=.*▇)[▇\s\p{P}]+|SCRUBBED)$/su

/**
 * Reads each ticket as a source, and its comments as quotes. The pieces of a ticket are ordered by
 * its `updated_at`, and by the dates of comments outside the ticket. Before this, a survey of all
 * files finds the names of users, and deletions.
 */
export const zendeskFormat: Format = {
  name: 'zendesk',
  title: 'Zendesk',
  description: 'Zendesk tickets, or incremental exports of tickets and ticket_events (JSON)',
  sourceIs: 'a ticket',
  howTo:
    'Admin Center, Account, Tools, Reports, Export: JSON (Zendesk enables it on request), or the API',
  options: ['internalNotes'],
  owns: ownsFolder({}),
  wrote: (beginning) =>
    isBesideTickets(jsonShape(beginning)) || beginning.includes('.zendesk.com/api/v2/'),
  recognises: byShape(isZendesk),
  async *read(files, options) {
    const survey = await surveyExport(files)
    for (const file of files) {
      for await (const records of readRecords(file)) {
        yield records.flatMap((record) =>
          'value' in record ? readRecord(record, survey, options) : [record],
        )
      }
    }
  },
}

const TICKET_PLACES = ['', '[].', 'tickets[].', 'ticket.', '[].ticket.']

function isZendesk({ members }: JsonShape): boolean {
  const hasEvents = members.has('ticket_events[].child_events') || members.has('audits[].ticket_id')
  return (
    hasEvents ||
    TICKET_PLACES.some((at) => members.has(`${at}subject`) && members.has(`${at}requester_id`))
  )
}

/**
 * Recognises users, organisations and comments only beside tickets, because other programs write
 * such records, too.
 */
function isBesideTickets({ members }: JsonShape): boolean {
  const isUsers = ['', '[].', 'users[].'].some(
    (at) => members.has(`${at}name`) && members.has(`${at}role`),
  )
  const isComments = ['', '[].', 'comments[].'].some((at) => members.has(`${at}ticket_id`))
  return isUsers || isComments || members.has('organizations')
}

function readRecord(record: ZendeskRecord, survey: Survey, options: FormatOptions): Found[] {
  const { kind, value, place } = record
  if (kind === 'user') return []
  if (kind === 'other') return [skipped('records other than tickets and comments', place)]
  const id = asId(kind === 'ticket' ? value.id : value.ticket_id)
  if (id === undefined) return [rejected(`The ${kind} names no ticket.`, place, value)]
  const comments = commentsOf(record)
  if (survey.deleted.has(id)) return skipDeleted(kind, comments.length, place)
  const { quotes, notes } = readComments(comments, place, survey, options)
  for (const { value: chat } of asObjects(value.child_events ?? value.events))
    if (asObject(chat)?.history !== undefined) notes.push(skipped(CHATS, place))
  if (kind === 'ticket') quotes.push(...ratingIn(value, survey))
  if (kind !== 'ticket')
    return [
      ...notes,
      ...quotes.map((quote) => piece(id, quote.createdAt ?? '', {}, [quote], place)),
    ]
  if (!Array.isArray(value.comments) && !survey.hasComments) notes.push(skipped(NO_COMMENTS, place))
  // Counted only if there are no comments, because the first comment repeats the description.
  if (comments.length === 0 && !survey.hasComments && asText(value.description))
    notes.push(skipped(DESCRIPTION, place))
  return [...notes, ticketPiece(value, id, quotes, place)]
}

/** Returns what the requester wrote when Zendesk asked whether the answer was good. */
function ratingIn(
  { satisfaction_rating, requester_id }: JsonObject,
  { names }: Survey,
): QuoteInput[] {
  const { id, comment } = asObject(satisfaction_rating) ?? {}
  const text = asText(comment)
  if (text === undefined || REDACTED.test(text)) return []
  const speaker = names.get(asId(requester_id) ?? '')
  return [{ text, externalId: `satisfaction/${asId(id) ?? 'rating'}`, ...present({ speaker }) }]
}

function commentsOf({ kind, value }: ZendeskRecord): readonly JsonObject[] {
  if (kind === 'comment') return [value]
  return kind === 'event' ? commentsIn(value) : asObjects(value.comments)
}

function ticketPiece(ticket: JsonObject, id: string, quotes: QuoteInput[], place: Place): Piece {
  const fields = present({
    title: asTexts([ticket.subject, ticket.raw_subject]).find((title) => !REDACTED.test(title)),
    url: agentUrl(asText(ticket.url)),
    createdAt: dateOf(ticket),
  })
  return piece(id, asIsoDate(ticket.updated_at) ?? '', fields, quotes, place)
}

function skipDeleted(kind: ZendeskRecord['kind'], comments: number, place: Place): Noted[] {
  if (kind === 'ticket') return [skipped('tickets that were deleted', place)]
  return Array.from({ length: comments }, () =>
    skipped('comments of tickets that were deleted', place),
  )
}

/** Returns the agents' page of a ticket's URL in the API, such as `…/api/v2/tickets/7.json`. */
function agentUrl(url: string | undefined): string | undefined {
  return url?.replace(/\/api\/v2\/tickets\/(\d+)(?:\.json)?$/, '/agent/tickets/$1')
}

function readComments(
  comments: readonly JsonObject[],
  place: Place,
  { names }: Survey,
  options: FormatOptions,
) {
  const quotes: QuoteInput[] = []
  const notes: Noted[] = []
  for (const comment of comments) {
    const quote = toQuote(comment, names)
    if (comment.public === false && !options.internalNotes)
      notes.push(skipped('internal notes (take them with --internal-notes)', place))
    else if (quote && REDACTED.test(quote.text))
      notes.push(skipped('comments that were redacted', place))
    else if (quote) {
      quotes.push(quote)
      for (const _ of imagesBeside(quote.text, comment))
        notes.push(skipped('images in texts', place))
    } else notes.push(skipped('comments without text', place))
  }
  return { quotes, notes }
}

function toQuote(comment: JsonObject, names: Survey['names']): QuoteInput | undefined {
  const text = textOf(comment)
  const attachments = asTexts(asObjects(comment.attachments).map(({ file_name }) => file_name))
  if (text === undefined && attachments.length === 0) return undefined
  const fields = {
    externalId: asId(comment.id),
    speaker: speakerOf(comment, names),
    createdAt: dateOf(comment),
  }
  return { text: text ?? '', ...present({ ...fields, attachments }) }
}

/** Returns an event's or audit's comments. Fields that they lack are taken from the event. */
function commentsIn({ child_events, events, updater_id, ...event }: JsonObject): JsonObject[] {
  const { author_id, timestamp, created_at } = event
  return asObjects(child_events ?? events)
    .filter(({ type, event_type }) => COMMENT_TYPES.has(String(event_type ?? type)))
    .map((comment) => ({ author_id: updater_id ?? author_id, timestamp, created_at, ...comment }))
}

/** If Zendesk has transcribed a call, the text contains what was said. */
function textOf({ html_body, plain_body, body, data }: JsonObject): string | undefined {
  const html = asText(html_body)
  const text = (html && asText(htmlToText(html))) ?? asText(plain_body) ?? asText(body)
  const said = asText(asObject(data)?.transcription_text)
  return said === undefined || text?.includes(said) ? text : [text, said].filter(Boolean).join('\n')
}

/** Returns images in the HTML that are not attached. (`body` has the addresses of all images.) */
function imagesBeside(
  text: string,
  { html_body, body, attachments }: JsonObject,
): readonly string[] {
  const attached = asObjects(attachments).filter(({ inline }) => inline === true).length
  return text === body ? [] : (asText(html_body)?.match(/<img\b/gi) ?? []).slice(attached)
}

function speakerOf({ author_id, via }: JsonObject, names: Survey['names']): string | undefined {
  const id = asId(author_id)
  const from = asObject(asObject(asObject(via)?.source)?.from)
  return (id && names.get(id)) ?? asText(from?.name) ?? (id === OF_ZENDESK ? undefined : id)
}

function dateOf({ created_at, timestamp }: JsonObject): string | undefined {
  return asIsoDate(created_at) ?? isoDateOf(asNumber(timestamp))
}
