// Reads the records of a Zendesk export. Surveys all of them before the tickets are read.
import type { AnswerPage, InputFile, Place, Rejected } from '../format.ts'
import { jsonShape } from '../read/json-beginning.ts'
import { readJsonFile, recordsAndLists } from '../read/json-records.ts'
import { readBeginning } from '../read/utf8-chunks.ts'
import { asId, asObject, asObjects, asText, type JsonObject } from '../values/record-fields.ts'

/** A record of an export. A `comment` is a comment outside its ticket. */
export interface ZendeskRecord {
  kind: 'ticket' | 'event' | 'comment' | 'user' | 'other'
  value: JsonObject
  place: Place
}

/** The name of all users who were deleted permanently. It must not replace a stored name. */
const FORGOTTEN = 'Permanently deleted user'
const LISTS = ['tickets', 'ticket_events', 'audits', 'users']

/** Reads the records of API pages, lists, NDJSON, or `{ ticket, comments, users }` each. */
export async function* readRecords(
  file: InputFile,
): AsyncGenerator<(ZendeskRecord | Rejected | AnswerPage)[]> {
  const { members } = jsonShape(await readBeginning(file))
  // In a root `{ ticket, … }`, the lists belong to the ticket, so the root is read as a whole.
  const lists = members.has('ticket') ? [] : LISTS
  // A ticket also has comments, but does not begin with them, as an answer does.
  const [first] = members
  const isBeside = ['tickets[].id', 'comments[].ticket_id'].some((name) => members.has(name))
  const beside = isBeside || first === 'comments' ? ['comments'] : []
  for await (const records of readJsonFile(file, recordsAndLists(...lists, ...beside)))
    yield records.flatMap<ZendeskRecord | Rejected | AnswerPage>((record) =>
      record.kind === 'record' ? unwrap(record.value, record.place) : record,
    )
}

function unwrap(value: unknown, place: Place): ZendeskRecord[] {
  const object = asObject(value) ?? {}
  const ticket = asObject(object.ticket)
  if (!ticket) return [{ kind: kindOf(object), value: object, place }]
  const users = asObjects(object.users).map((user) => ({
    kind: 'user' as const,
    value: user,
    place,
  }))
  const comments = object.comments ?? ticket.comments
  return [
    ...users,
    { kind: 'ticket', value: comments === undefined ? ticket : { ...ticket, comments }, place },
  ]
}

function kindOf(value: JsonObject): ZendeskRecord['kind'] {
  if (Array.isArray(value.child_events) || Array.isArray(value.events)) return 'event'
  if (value.subject !== undefined || value.raw_subject !== undefined) return 'ticket'
  if (value.body !== undefined || value.html_body !== undefined) return 'comment'
  return value.name !== undefined && value.role !== undefined ? 'user' : 'other'
}

/** About 20 MB of names. Further authors are shown by their ids. */
const MOST_NAMES = 200_000

export type Survey = Awaited<ReturnType<typeof surveyExport>>

/** Surveys all files: twice if a ticket was deleted, as an earlier record may restore it. */
export async function surveyExport(files: readonly InputFile[]) {
  const names = new Map<string, string>()
  /** When tickets were deleted, by id, unless restored later. Each needs about 100 bytes. */
  const deleted = new Map<string, string>()
  /** Whether comments exist outside their tickets: as records, or in events. */
  let hasComments = false
  await forEachRecord(files, ({ kind, value }) => {
    const id = asId(value.id)
    if (kind === 'event' || kind === 'comment') hasComments = true
    for (const person of peopleIn(value)) addPerson(names, person)
    if (id === undefined) return
    const name = asText(value.name)
    const at = updatedAt(value)
    if (kind === 'user' && name !== undefined && names.size < MOST_NAMES)
      names.set(id, name === FORGOTTEN ? '' : name)
    if (kind === 'ticket' && value.status === 'deleted' && at >= (deleted.get(id) ?? ''))
      deleted.set(id, at)
  })
  const restore = ({ kind, value }: ZendeskRecord) => {
    const id = asId(value.id) ?? ''
    const at = deleted.get(id)
    if (
      at !== undefined &&
      kind === 'ticket' &&
      value.status !== 'deleted' &&
      updatedAt(value) > at
    )
      deleted.delete(id)
  }
  if (deleted.size > 0) await forEachRecord(files, restore)
  return { names, deleted, hasComments }
}

/** A record of the user replaces the name, because it may say that the user was deleted. */
function addPerson(names: Map<string, string>, person: JsonObject): void {
  const id = asId(person.id)
  const name = asText(person.name)
  if (id !== undefined && name !== undefined && names.size < MOST_NAMES && !names.has(id))
    names.set(id, name)
}

/** Returns the people within a record, because an account's export has no list of users. */
function peopleIn(value: JsonObject): readonly JsonObject[] {
  const { requester, submitter, assignee, author, updater, collaborators, followers, users } = value
  const comments = asObjects(value.comments ?? value.child_events ?? value.events)
  const people = [
    requester,
    submitter,
    assignee,
    author,
    updater,
    ...comments.map((comment) => comment.author),
  ]
  return [people, collaborators, followers, users].flatMap((list) => asObjects(list))
}

async function forEachRecord(
  files: readonly InputFile[],
  visit: (record: ZendeskRecord) => void,
): Promise<void> {
  for (const file of files)
    for await (const records of readRecords(file))
      for (const record of records) if ('value' in record) visit(record)
}

function updatedAt({ updated_at }: JsonObject): string {
  return asText(updated_at) ?? ''
}
