// Tickets of Zendesk with their comments: lists and pages of the API, its incremental exports, and the JSON export of an account.
import { parseIsoDate } from '@sluice/contract'
import {
  type Format,
  FormatError,
  type FormatOptions,
  type Found,
  type Noted,
  type Piece,
  type Place,
  type QuoteInput,
  type SourceFields,
} from '../format.ts'
import { type JsonShape, jsonShape } from '../read/json-beginning.ts'
import { asId, asObjects, asText, type JsonObject, present } from '../values/record-fields.ts'
import { commentsIn, dateOf, readComments } from './comments.ts'
import { readRecords, type ZendeskRecord } from './records.ts'
import { type Survey, surveyExport } from './survey.ts'

const LOOKED_AT = 5
const NO_COMMENTS =
  'tickets whose comments are not in the input (export ticket_events with include=comment_events, too)'
const READ_ONCE = 'A Zendesk export is read twice, and differed. Save it to a file: it cannot come from standard input.'

/**
 * Reads each ticket as a source and its comments as quotes. The pieces of a ticket are ordered by its `updated_at`, and comments that stand apart by their
 * dates. The files are read more than once: the names of users and the deletions come first.
 */
export const zendeskFormat: Format = {
  name: 'zendesk',
  description: 'Zendesk tickets with comments, or incremental exports of tickets and ticket_events, JSON',
  isScattered: true,
  async recognises(files, beginning) {
    for (const file of files.slice(0, LOOKED_AT)) if (isZendesk(jsonShape(await beginning(file)))) return true
    return false
  },
  async *read(files, options) {
    const survey = await surveyExport(files)
    let count = 0
    for (const file of files) {
      for await (const records of readRecords(file)) {
        count += records.filter(({ kind }) => kind !== 'rejected').length
        yield records.flatMap((record) => (record.kind === 'rejected' ? [record] : readRecord(record, survey, options)))
      }
    }
    if (count !== survey.records) throw new FormatError(READ_ONCE)
  },
}

const TICKET_PLACES = ['', '[].', 'tickets[].', 'ticket.', '[].ticket.']

function isZendesk({ members }: JsonShape): boolean {
  const hasEvents = members.has('ticket_events[].child_events') || members.has('audits[].ticket_id')
  return hasEvents || TICKET_PLACES.some((at) => members.has(`${at}subject`) && members.has(`${at}requester_id`))
}

function readRecord(record: ZendeskRecord, survey: Survey, options: FormatOptions): Found[] {
  const { kind, value, place } = record
  if (kind === 'user') return []
  if (kind === 'other') return [skip('records other than tickets and comments', place)]
  const id = asId(kind === 'ticket' ? value.id : value.ticket_id)
  if (id === undefined) return [{ kind: 'rejected', reason: `The ${kind} names no ticket.`, place, record: value }]
  const comments = commentsOf(record)
  if (survey.deleted.has(id)) return skipDeleted(kind, comments.length, place)
  const { quotes, notes } = readComments(comments, place, survey, options)
  if (kind !== 'ticket') return [...notes, ...quotes.map((quote) => commentPiece(id, quote, place))]
  if (!Array.isArray(value.comments) && !survey.hasEvents) notes.push(skip(NO_COMMENTS, place))
  return [...notes, ticketPiece(value, id, quotes, place)]
}

function commentsOf({ kind, value }: ZendeskRecord): readonly JsonObject[] {
  if (kind === 'comment') return [value]
  return kind === 'event' ? commentsIn(value) : asObjects(value.comments)
}

function ticketPiece(ticket: JsonObject, externalId: string, quotes: QuoteInput[], place: Place): Piece {
  const fields: SourceFields = present({
    title: asText(ticket.subject) ?? asText(ticket.raw_subject),
    placeholderTitle: placeholder(externalId),
    url: agentUrl(asText(ticket.url)),
    createdAt: dateOf(ticket),
  })
  const order = parseIsoDate(asText(ticket.updated_at) ?? '') ?? ''
  return { kind: 'piece', service: 'zendesk', externalId, order, fields, quotes, place }
}

function commentPiece(externalId: string, quote: QuoteInput, place: Place): Piece {
  const fields = { placeholderTitle: placeholder(externalId) }
  return { kind: 'piece', service: 'zendesk', externalId, order: quote.createdAt ?? '', fields, quotes: [quote], place }
}

function skipDeleted(kind: ZendeskRecord['kind'], comments: number, place: Place): Noted[] {
  if (kind === 'ticket') return [skip('tickets that were deleted', place)]
  return Array.from({ length: comments }, () => skip('comments of tickets that were deleted', place))
}

/** The page that agents see: `https://example.zendesk.com/api/v2/tickets/7.json` is the API's. */
function agentUrl(url: string | undefined): string | undefined {
  return url?.replace(/\/api\/v2\/tickets\/(\d+)(?:\.json)?$/, '/agent/tickets/$1')
}

function placeholder(id: string): string {
  return `Ticket #${id}`
}

function skip(reason: string, place: Place): Noted {
  return { kind: 'skipped', reason, place }
}
