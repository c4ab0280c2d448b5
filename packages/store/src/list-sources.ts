// Lists a tenant's sources, newest first, a page at a time, by the index of `meta.listKey` alone.
import type { ListedSource, SourceList, SourceListQuery } from '@sluice/contract'
import type { Collection } from 'mongodb'
import type { SourceDocument } from './documents.ts'
import { listPlaceOf, listPrefixOf, listTagOf } from './ids.ts'
import { PAGE_CHARACTERS, READ_MS, SOURCE_FIELDS, type StoredSource, shownSource } from './shown-source.ts'

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
  const tag = listTagOf(tenant, service, since)
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
