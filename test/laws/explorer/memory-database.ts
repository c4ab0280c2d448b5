import {
  type CollectionName,
  type Documents,
  type ReadConcern,
  type SourceOrTombstone,
  type StoreCommands,
  seenQuote,
  type UpdateStatement,
  type WriteReply,
} from '@sluice/store'
import { type Document, ObjectId } from 'mongodb'

// The store's commands in memory. `commands.test.ts` requires the same behaviour of them and of a
// real server.

type Collections = { [Name in CollectionName]: Map<string, Documents[Name]> }

export type MemoryDatabase = ReturnType<typeof createMemoryDatabase>

/**
 * A run of a command, which stops after each document. So another command may take effect between
 * two documents of one command, as on a server.
 */
export type Run<Reply> = Generator<void, Reply>

export function createMemoryDatabase(writesPerCommand = 250) {
  /** The documents that the primary has, and those of them that a majority has. */
  const seenBy = { local: emptyCollections(), majority: emptyCollections() }
  /** The documents that were written since a majority had all. */
  let unconfirmed: { name: CollectionName; document: Document; isRemoved?: true }[] = []

  function store(name: CollectionName, document: Document): void {
    const stored = frozenCopy(document)
    put(seenBy.local, name, stored)
    unconfirmed.push({ name, document: stored })
  }

  function remove(name: 'sources' | 'quotes', _id: string, isMeant: boolean): number {
    if (!isMeant) return 0
    seenBy.local[name].delete(_id)
    unconfirmed.push({ name, document: { _id }, isRemoved: true })
    return 1
  }
  const removeQuote = (_id: string, upTo: number) =>
    remove('quotes', _id, (seenBy.local.quotes.get(_id)?.meta.stamp ?? Infinity) <= upTo)

  /** The documents of a collection, as they are stored. */
  function all<Name extends CollectionName>(
    name: Name,
    concern: ReadConcern = 'local',
  ): Documents[Name][] {
    return [...seenBy[concern][name].values()]
  }

  function insertOne(name: CollectionName, document: Document): boolean {
    if (seenBy.local[name].has(String(document._id))) return false
    store(name, document)
    return true
  }

  function updateOne(name: CollectionName, { q, u, upsert }: UpdateStatement): number {
    const before: Document | undefined =
      seenBy.local[name].get(String(q._id)) ?? (upsert && { _id: q._id })
    if (before === undefined) return 0
    for (const path in q) if (!isEqual(valueAt(before, path), q[path])) return 0
    store(name, updated(before, u))
    return 1
  }

  const runs = {
    *find<Name extends CollectionName>(
      name: Name,
      ids: readonly string[],
      concern: ReadConcern = 'local',
    ) {
      const found = yield* each([...new Set(ids)], (id) => seenBy[concern][name].get(id))
      return found.filter((document) => document !== undefined)
    },
    *findWithoutTexts(ids: readonly string[], concern: ReadConcern = 'local') {
      const found = yield* runs.find('quotes', ids, concern)
      return found.map(({ text: _, ...others }) => others)
    },
    *findVersions(name: 'sources' | 'quotes', ids: readonly string[], withEpoch?: 'withEpoch') {
      const found = (yield* runs.find(name, ids)).filter(
        ({ meta }) => withEpoch === undefined || 'epoch' in meta,
      )
      return found.map(({ _id, meta }) => {
        const epoch = 'epoch' in meta ? meta.epoch : undefined
        return { _id, meta: { version: meta.version, ...(epoch && { epoch }) } }
      })
    },
    /**
     * Walks the index: a quote that is inserted meanwhile is summed, but the walk does not return
     * to a quote that was updated.
     */
    *sumQuotes(_id: string, marked: readonly SourceOrTombstone[] = []) {
      const source = marked.find((one) => one._id === _id)
      const sum = { _id, wordCount: 0, quoteCount: 0 }
      for (const quote of seenBy.majority.quotes.values()) {
        if (quote.sourceId !== _id || !quote._id.startsWith(_id)) continue
        if (seenQuote(quote, source) === undefined) continue
        sum.wordCount += quote.wordCount
        sum.quoteCount += 1
        yield
      }
      return sum.quoteCount === 0 ? [] : [sum]
    },
    *findQuotesOf(
      sourceId: string,
      { after, limit, upTo }: Parameters<StoreCommands['findQuotesOf']>[1],
    ) {
      const ids = all('quotes').flatMap((quote) =>
        quote.sourceId === sourceId && quote._id > after ? [quote._id] : [],
      )
      const found = yield* runs.findWithoutTexts(ids.sort())
      return found.filter(({ position }) => upTo === undefined || position <= upTo).slice(0, limit)
    },
    *removeQuotes(ids: readonly string[], upTo: number): Run<WriteReply> {
      const counts = yield* each(ids, (id) => removeQuote(id, upTo))
      return { n: counts.reduce((sum, count) => sum + count, 0), refused: [] }
    },
    *removeSources(sources: Parameters<StoreCommands['removeSources']>[0]): Run<WriteReply> {
      const counts = yield* each(sources, ({ _id, meta: { version } }) =>
        remove(
          'sources',
          _id,
          seenBy.local.sources.get(_id)?.meta.version.equals(version) === true,
        ),
      )
      return { n: counts.reduce((sum, count) => sum + count, 0), refused: [] }
    },
    *insert(name: CollectionName, documents: readonly Document[]): Run<WriteReply> {
      const wereAbsent = yield* each(documents, (document) => insertOne(name, document))
      const refused = [...documents.keys()].filter((at) => wereAbsent[at] !== true)
      return { n: documents.length - refused.length, refused }
    },
    *update(name: CollectionName, statements: readonly UpdateStatement[]): Run<WriteReply> {
      const counts = yield* each(statements.flatMap(singleUpdates), (statement) =>
        updateOne(name, statement),
      )
      return { n: counts.reduce((sum, count) => sum + count, 0), refused: [] }
    },
  }

  function confirm(): void {
    for (const { name, document, isRemoved } of unconfirmed) {
      if (isRemoved) seenBy.majority[name].delete(document._id)
      else put(seenBy.majority, name, document)
    }
    unconfirmed = []
  }
  const confirmed = (reply: WriteReply) => {
    confirm()
    return reply
  }

  const commands: StoreCommands = {
    writesPerCommand,
    find: async (name, ids, concern) => atOnce(runs.find(name, ids, concern)),
    findWithoutTexts: async (ids, concern) => atOnce(runs.findWithoutTexts(ids, concern)),
    findVersions: async (name, ids, withEpoch) => atOnce(runs.findVersions(name, ids, withEpoch)),
    findQuotesOf: async (sourceId, page) => atOnce(runs.findQuotesOf(sourceId, page)),
    sumQuotes: async (sourceIds, { marked } = {}) =>
      sourceIds.flatMap((id) => atOnce(runs.sumQuotes(id, marked))),
    async *scanSources() {
      const own = all('sources').map(({ _id, wordCount, quoteCount, meta }) => {
        return { _id, wordCount, quoteCount, meta }
      })
      yield { own, foreign: [] }
    },
    insert: async (name, documents) => confirmed(atOnce(runs.insert(name, documents))),
    update: async (name, statements) => confirmed(atOnce(runs.update(name, statements))),
    removeQuotes: async (_, ids, upTo) => confirmed(atOnce(runs.removeQuotes(ids, upTo))),
    removeSources: async (sources) => confirmed(atOnce(runs.removeSources(sources))),
    prepare: async () => {},
  }

  return {
    commands,
    runs,
    all,
    /** A majority has all documents now. */
    confirm,
    /** Another primary takes over, with the documents that a majority has. */
    losePrimary() {
      const { sources, quotes, writers } = seenBy.majority
      seenBy.local = {
        sources: new Map(sources),
        quotes: new Map(quotes),
        writers: new Map(writers),
      }
      unconfirmed = []
    },
    removeWriters() {
      seenBy.local.writers.clear()
      seenBy.majority.writers.clear()
      unconfirmed = unconfirmed.filter(({ name }) => name !== 'writers')
    },
  }
}

/** An update of a list of documents, as one of each. */
export function singleUpdates({ q, multi, ...rest }: UpdateStatement): UpdateStatement[] {
  return multi ? q._id.$in.map((_id: string) => ({ q: { ...q, _id }, ...rest })) : [{ q, ...rest }]
}

function emptyCollections(): Collections {
  return { sources: new Map(), quotes: new Map(), writers: new Map() }
}

function put(collections: Collections, name: CollectionName, document: Document): void {
  const documents: Map<string, Document> = collections[name]
  documents.set(String(document._id), document)
}

/** Does this for each item and stops in between. */
function* each<Item, Result>(items: readonly Item[], act: (item: Item) => Result): Run<Result[]> {
  const results: Result[] = []
  for (const item of items) {
    if (results.length > 0) yield
    results.push(act(item))
  }
  return results
}

function atOnce<Reply>(run: Run<Reply>): Reply {
  let step = run.next()
  while (step.done !== true) step = run.next()
  return step.value
}

function updated(before: Document, update: Document): Document {
  const { $set, $max, $unset } = update
  if ($set === undefined && $max === undefined && $unset === undefined)
    return { _id: before._id, ...update }
  let document = before
  for (const [path, value] of Object.entries($set ?? {}))
    document = withValue(document, path.split('.'), value ?? null)
  for (const [path, value] of Object.entries($max ?? {})) {
    const stored = valueAt(document, path)
    if (stored === undefined || Number(value) > Number(stored))
      document = withValue(document, path.split('.'), value)
  }
  for (const path of Object.keys($unset ?? {})) document = without(document, path.split('.'))
  return document
}

function withValue(document: Document, [name = '', ...rest]: string[], value: unknown): Document {
  return {
    ...document,
    [name]: rest.length === 0 ? value : withValue(document[name] ?? {}, rest, value),
  }
}

function without(document: Document, [name = '', ...rest]: string[]): Document {
  const { [name]: inner, ...others } = document
  if (rest.length === 0) return others
  return inner === undefined ? document : { ...document, [name]: without(inner, rest) }
}

function valueAt(document: Document, path: string): unknown {
  return path.split('.').reduce<Document | undefined>((value, name) => value?.[name], document)
}

/** A guard of null or undefined matches an absent field, too. */
function isEqual(one: unknown, other: unknown): boolean {
  return one instanceof ObjectId && other instanceof ObjectId
    ? one.equals(other)
    : (one ?? null) === (other ?? null)
}

/** Frozen: code that changes what it read fails, as its change would never reach a server. */
function frozenCopy<Value>(value: Value): Value
function frozenCopy(value: unknown): unknown {
  if (Array.isArray(value)) return Object.freeze(value.map(frozenCopy))
  if (value === undefined) return null
  if (
    typeof value !== 'object' ||
    value === null ||
    value instanceof Date ||
    value instanceof ObjectId
  )
    return value
  return Object.freeze(
    Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, frozenCopy(inner)])),
  )
}
