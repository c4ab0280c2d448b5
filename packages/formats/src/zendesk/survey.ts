// Surveys a Zendesk export before its tickets are read: the names of users, and the deleted tickets.
import type { InputFile } from '../format.ts'
import { asId, asText, type JsonObject } from '../values/record-fields.ts'
import { readRecords, type ZendeskRecord } from './records.ts'

/** The most names that are kept in memory: some 20 MB. The other authors are shown by their ids. */
const MOST_NAMES = 200_000

export interface Survey {
  /** The names of users by their ids. */
  names: ReadonlyMap<string, string>
  /** The ids of tickets whose latest state is deleted: some 100 bytes each. */
  deleted: ReadonlyMap<string, string>
  hasEvents: boolean
  /** How many records the files have. */
  records: number
}

/** Reads all files once. If a ticket was deleted it reads them twice, because the record that restores a ticket may come first. */
export async function surveyExport(files: readonly InputFile[]): Promise<Survey> {
  const names = new Map<string, string>()
  const deleted = new Map<string, string>()
  let hasEvents = false
  let count = 0
  await forEachRecord(files, ({ kind, value }) => {
    count += 1
    if (kind === 'event') hasEvents = true
    else if (kind === 'user') addName(names, value)
    else if (kind === 'ticket' && value.status === 'deleted') addDeletion(deleted, value)
  })
  if (deleted.size > 0) await forEachRecord(files, ({ kind, value }) => kind === 'ticket' && restore(deleted, value))
  return { names, deleted, hasEvents, records: count }
}

async function forEachRecord(files: readonly InputFile[], visit: (record: ZendeskRecord) => unknown): Promise<void> {
  for (const file of files)
    for await (const records of readRecords(file))
      for (const record of records) if (record.kind !== 'rejected') visit(record)
}

function addName(names: Map<string, string>, user: JsonObject): void {
  const id = asId(user.id)
  const name = asText(user.name)
  if (id !== undefined && name !== undefined && names.size < MOST_NAMES) names.set(id, name)
}

/** Keeps the moment of the deletion. */
function addDeletion(deleted: Map<string, string>, ticket: JsonObject): void {
  const id = asId(ticket.id)
  const at = asText(ticket.updated_at) ?? ''
  if (id !== undefined && at >= (deleted.get(id) ?? '')) deleted.set(id, at)
}

function restore(deleted: Map<string, string>, ticket: JsonObject): void {
  const id = asId(ticket.id) ?? ''
  const at = deleted.get(id)
  if (at !== undefined && ticket.status !== 'deleted' && (asText(ticket.updated_at) ?? '') > at) deleted.delete(id)
}
