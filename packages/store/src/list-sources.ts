// Stored sources as callers see them, and lists of a tenant's sources, newest first, a page at a time, by the index of
// `meta.listKey` alone.
import {
  type ListedSource,
  type SourceList,
  type SourceListQuery,
  type SourcePage,
  SourcePageSchema,
} from '@sluice/contract'
import type { Collection } from 'mongodb'
import type { SourceDocument } from './documents.ts'
import { hashTuple, listPlaceOf, listPrefixOf } from './ids.ts'

/** A source as its readers need it. */
export type StoredSource = Pick<SourceDocument, '_id' | 'createdAt' | 'tenant'> &
  Omit<SourcePage['source'], 'id' | 'createdAt'>
/** Ends a read. A source of a million quotes is read and sorted for each of its pages. */
export const READ_MS = 10_000
/** Ends a page whose texts exceed this number of characters, so that a page fits into memory. */
export const PAGE_CHARACTERS = 4 * 1024 * 1024

/** Only the fields that callers see are read: other tools may keep large ones of their own in the same documents. */
export const SOURCE_FIELDS = { ...fieldsOf(SourcePageSchema.properties.source), tenant: 1 }
/** A source as callers see it. */
export function shownSource({ _id, tenant: _, createdAt, description, ...fields }: StoredSource): SourcePage['source'] {
  return { id: _id, ...fields, description: description ?? null, createdAt: createdAt.toISOString() }
}

/** The projection of a schema's fields. */
export function fieldsOf({ properties }: { properties: object }): Record<string, 1> {
  return Object.fromEntries(Object.keys(properties).flatMap((name) => (name === 'id' ? [] : [[name, 1] as const])))
}

type Stored = StoredSource & Pick<SourceDocument, 'acceptedAt' | 'quoteCount'>

const FIELDS = { ...SOURCE_FIELDS, acceptedAt: 1, quoteCount: 1 }
/** The most sources that a page with a service reads, so that sources of other services can't make it slow. */
const EXAMINED = 5_000
const CURSOR = /^(\d{15}\/[\w-]{24})~([\w-]{8})$/

/** Reads a page. Undefined if `after` is no cursor of this tenant, service and `since`. */
export async function readList(
  sources: Collection<SourceDocument>,
  tenant: string,
  { service, since, limit, after }: SourceListQuery,
  signal: AbortSignal,
): Promise<SourceList | undefined> {
  // Shows whether a cursor belongs to this list.
  const tag = hashTuple('list', tenant, service, since).slice(0, 8)
  const [, place, tagOfCursor] = CURSOR.exec(after ?? '') ?? []
  if (after !== undefined && tagOfCursor !== tag) return undefined
  const prefix = listPrefixOf(tenant)
  const range = { $gte: prefix + (since === undefined ? '' : listPlaceOf(since)), $lt: prefix + (place ?? END) }
  const options = { sort: { 'meta.listKey': -1 }, signal, maxTimeMS: READ_MS } as const
  // Ends the page before sources of other services make it slow.
  const last =
    service === undefined
      ? undefined
      : await sources.findOne({ 'meta.listKey': range }, { ...options, projection: KEY, skip: EXAMINED - 1 })
  const within = last === null || last === undefined ? range : { ...range, $gte: last.meta.listKey }
  const filter = { 'meta.listKey': within, ...(service !== undefined && { service }) }
  const cursorAt = (last: string) => `${last}~${tag}`

  const list: SourceList = { sources: [] }
  let characters = 0
  const atOnce = { projection: FIELDS, limit: limit + 1, batchSize: limit + 2 }
  for await (const source of sources.find<Stored>(filter, { ...options, ...atOnce })) {
    const before = list.sources.at(-1)
    if (before !== undefined && (list.sources.length === limit || characters > PAGE_CHARACTERS))
      return { ...list, next: cursorAt(listPlaceOf(new Date(before.acceptedAt), before.id)) }
    list.sources.push(listed(source))
    characters += source.title.length + (source.description?.length ?? 0)
  }
  return last ? { ...list, next: cursorAt(last.meta.listKey.slice(prefix.length)) } : list
}

const KEY = { 'meta.listKey': 1 } as const
/** Sorts after all dates. */
const END = ':'

function listed({ acceptedAt, quoteCount, ...source }: Stored): ListedSource {
  return { ...shownSource(source), quoteCount, acceptedAt: acceptedAt.toISOString() }
}
