import type { CollectionName, Documents, StoreCommands, UpdateStatement, WriteReply } from '@sluice/store'
import { type Document, ObjectId } from 'mongodb'

// The store's commands in memory. `commands.test.ts` holds them and a real server to the same behaviour.

export interface MemoryDatabase {
  commands: StoreCommands
  /** All documents of a collection, as they are stored. */
  all<Name extends CollectionName>(name: Name): Documents[Name][]
}

export function createMemoryDatabase(): MemoryDatabase {
  const collections: { [Name in CollectionName]: Map<string, Documents[Name]> } = {
    sources: new Map(),
    quotes: new Map(),
    writers: new Map(),
  }
  const all = <Name extends CollectionName>(name: Name): Documents[Name][] => [...collections[name].values()]
  const findIn = <Name extends CollectionName>(name: Name, ids: readonly string[]) =>
    [...new Set(ids)].flatMap((id) => collections[name].get(id) ?? [])

  function insertOne(name: CollectionName, document: Document): boolean {
    const documents: Map<string, Document> = collections[name]
    const id = String(document._id)
    if (documents.has(id)) return false
    documents.set(id, frozenCopy(document))
    return true
  }

  function updateOne(name: CollectionName, { q, u }: UpdateStatement): number {
    const documents: Map<string, Document> = collections[name]
    const id = String(q._id)
    const before = documents.get(id)
    if (before === undefined) return 0
    for (const path in q) if (!isEqual(valueAt(before, path), q[path])) return 0
    documents.set(id, frozenCopy(updated(before, u)))
    return 1
  }

  const commands: StoreCommands = {
    find: async (name, ids) => findIn(name, ids),
    findWithoutTexts: async (ids) => findIn('quotes', ids).map(({ text: _, ...others }) => others),
    async findVersions(name, ids, withEpoch) {
      const found = findIn(name, ids).filter(({ meta }) => withEpoch === undefined || 'epoch' in meta)
      return found.map(({ _id, meta }) => {
        const epoch = 'epoch' in meta ? meta.epoch : undefined
        return { _id, meta: { version: meta.version, ...(epoch && { epoch }) } }
      })
    },
    async sumQuotes(sourceIds) {
      return sourceIds.flatMap((_id) => {
        const quotes = all('quotes').filter(({ sourceId }) => sourceId === _id)
        if (quotes.length === 0) return []
        return [{ _id, wordCount: quotes.reduce((sum, quote) => sum + quote.wordCount, 0), quoteCount: quotes.length }]
      })
    },
    async countWithoutPosition(sourceIds) {
      return sourceIds.flatMap((_id) => {
        const quotes = all('quotes').filter(({ sourceId, position }) => sourceId === _id && position === undefined)
        return quotes.length === 0 ? [] : [{ _id, quoteCount: quotes.length }]
      })
    },
    async *scanQuotes(id) {
      for (const { _id, sourceId, position, createdAt, meta } of all('quotes')) {
        if (sourceId !== id) continue
        const { version, stamp, stamps } = meta
        const place = { ...(position !== undefined && { position }), ...(createdAt !== undefined && { createdAt }) }
        yield { _id, ...place, meta: { version, stamp, ...(stamps !== undefined && { stamps }) } }
      }
    },
    async *scanSources() {
      for (const { _id, wordCount, quoteCount, meta } of all('sources')) yield { _id, wordCount, quoteCount, meta }
    },
    async insert(name, documents): Promise<WriteReply> {
      const duplicates = [...documents.keys()].filter((at) => !insertOne(name, documents[at] ?? {}))
      return { n: documents.length - duplicates.length, duplicates }
    },
    async update(name, statements): Promise<WriteReply> {
      return { n: statements.reduce((n, statement) => n + updateOne(name, statement), 0), duplicates: [] }
    },
    createIndexes: async () => {},
  }
  return { commands, all }
}

function updated(before: Document, update: Document): Document {
  const { $set, $max, $unset } = update
  if ($set === undefined && $max === undefined && $unset === undefined) return { _id: before._id, ...update }
  let document = before
  for (const [path, value] of Object.entries($set ?? {})) document = withValue(document, path.split('.'), value ?? null)
  for (const [path, value] of Object.entries($max ?? {})) {
    if (Number(value) > Number(valueAt(document, path) ?? Number.NEGATIVE_INFINITY))
      document = withValue(document, path.split('.'), value)
  }
  for (const path of Object.keys($unset ?? {})) document = without(document, path.split('.'))
  return document
}

function withValue(document: Document, [name = '', ...rest]: string[], value: unknown): Document {
  return { ...document, [name]: rest.length === 0 ? value : withValue(document[name] ?? {}, rest, value) }
}

function without(document: Document, [name = '', ...rest]: string[]): Document {
  const { [name]: inner, ...others } = document
  if (rest.length === 0) return others
  return inner === undefined ? document : { ...document, [name]: without(inner, rest) }
}

function valueAt(document: Document, path: string): unknown {
  return path.split('.').reduce<Document | undefined>((value, name) => value?.[name], document)
}

/** A guard of null or undefined holds where the field is absent, too. */
function isEqual(one: unknown, other: unknown): boolean {
  return one instanceof ObjectId && other instanceof ObjectId ? one.equals(other) : (one ?? null) === (other ?? null)
}

/** Frozen: code that changes what it read fails, as its change would never reach a server. */
function frozenCopy<Value>(value: Value): Value
function frozenCopy(value: unknown): unknown {
  if (Array.isArray(value)) return Object.freeze(value.map(frozenCopy))
  if (value === undefined) return null
  if (typeof value !== 'object' || value === null || value instanceof Date || value instanceof ObjectId) return value
  return Object.freeze(Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, frozenCopy(inner)])))
}
