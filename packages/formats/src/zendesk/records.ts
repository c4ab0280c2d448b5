// The records of a Zendesk export, in the arrangements that its API and its exports have.
import type { InputFile, Place, Rejected } from '../format.ts'
import { jsonShape } from '../read/json-beginning.ts'
import { readJson, recordsAndLists } from '../read/json-records.ts'
import { readBeginning } from '../read/utf8-chunks.ts'
import { asObject, asObjects, type JsonObject } from '../values/record-fields.ts'

/** A record by what it is. A comment stands apart from its ticket and names it. */
export interface ZendeskRecord {
  kind: 'ticket' | 'event' | 'comment' | 'user' | 'other'
  value: JsonObject
  place: Place
}

const LISTS = ['tickets', 'ticket_events', 'audits', 'users']

/** Reads the records of a file: pages of the API, lists, NDJSON, or `{ ticket, comments, users }` for each ticket. */
export async function* readRecords(file: InputFile): AsyncGenerator<(ZendeskRecord | Rejected)[]> {
  const lists = (await hasOneTicket(file)) ? [] : LISTS
  for await (const records of readJson(file, recordsAndLists(...lists)))
    yield records.flatMap<ZendeskRecord | Rejected>((record) =>
      record.kind === 'rejected' ? [record] : unwrap(record.value, record.place),
    )
}

/** Returns whether a root is `{ ticket, … }`: its lists belong to the ticket, so that it must be read as a whole. */
async function hasOneTicket(file: InputFile): Promise<boolean> {
  return jsonShape(await readBeginning(file)).members.has('ticket')
}

function unwrap(value: unknown, place: Place): ZendeskRecord[] {
  const object = asObject(value) ?? {}
  const ticket = asObject(object.ticket)
  if (!ticket) return [{ kind: kindOf(object), value: object, place }]
  const users = asObjects(object.users).map((user) => ({ kind: 'user' as const, value: user, place }))
  const comments = object.comments ?? ticket.comments
  return [...users, { kind: 'ticket', value: comments === undefined ? ticket : { ...ticket, comments }, place }]
}

function kindOf(value: JsonObject): ZendeskRecord['kind'] {
  if (Array.isArray(value.child_events) || Array.isArray(value.events)) return 'event'
  if (value.ticket_id !== undefined && (value.body !== undefined || value.html_body !== undefined)) return 'comment'
  if (value.status !== undefined && (value.subject !== undefined || value.raw_subject !== undefined)) return 'ticket'
  return value.name !== undefined && value.role !== undefined ? 'user' : 'other'
}
