// Sends the store's commands to MongoDB.
import { setTimeout as delay } from 'node:timers/promises'
import { type Db, type Document, MongoServerError, ObjectId, type Timestamp } from 'mongodb'
import { seenFilter, seenQuote } from '../deletions.ts'
import type {
  QuoteDocument,
  QuoteWithoutText,
  SourceDocument,
  SourceOrTombstone,
} from '../documents.ts'
import { quotesOf, sourceIdIn } from '../ids.ts'
import {
  allRefused,
  asRefused,
  type CollectionName,
  CommandFailedError,
  type CommandOptions,
  chunksOf,
  createSteps,
  type Documents,
  errorCodeOf,
  IDS_PER_QUERY,
  isConflict,
  isTimeOut,
  PRIMARY,
  type QuoteTotals,
  type ReadConcern,
  refusedIn,
  type SourceTotals,
  type StoreCommands,
  sendAll,
  type Version,
  type WriteReply,
} from './commands.ts'
import { commitProbe, reasonBehind } from './connect-store.ts'

export type Runtime = typeof processRuntime

/** The clocks, random numbers and ids that this process uses. Tests replace them. */
export const processRuntime = {
  now: Date.now,
  /** Milliseconds by a clock that never jumps. */
  monotonic: () => performance.now(),
  /** A delay that does not keep the process alive. */
  delay: (ms: number): Promise<void> => delay(ms, undefined, { ref: false }),
  random: Math.random,
  /** Returns an id that is unique on all machines. */
  newId: () => new ObjectId(),
}

/** Every command ends within this time, even if its connection hangs. */
const COMMAND_MS = 10_000
/**
 * Few, because serialising blocks the event loop, and a server may lock a collection during a
 * command.
 */
const WRITES_PER_COMMAND = 250
const MARKS = { 'meta.version': 1, 'meta.epoch': 1 } as const

/**
 * Makes the commands. A command throws a `CommandFailedError` at its time limit, and a
 * `RefusedWriteError` if MongoDB refused a document. Otherwise it throws the driver's error. It
 * does not use the driver's `bulkWrite`, which is slower and does not distinguish a network error
 * from a refused write.
 */
export function mongoCommands(db: Db, options: CommandOptions = {}): StoreCommands {
  const { limitMs = COMMAND_MS, metrics } = options
  /**
   * When the last write took effect, by the cluster's clock. Stays undefined if MongoDB has no
   * replicas.
   */
  let writtenAt: Timestamp | undefined
  /**
   * Sends a command with a signal. Without one, the driver (7.9) waits for ever for `drain` on a
   * destroyed socket.
   */
  async function within<Reply>(
    command: string,
    send: (signal: AbortSignal) => Promise<Reply>,
  ): Promise<Reply> {
    const began = performance.now()
    const signal = AbortSignal.timeout(limitMs)
    try {
      return await send(signal)
    } catch (error) {
      metrics?.errors.inc({ code: signal.aborted ? 'timeout' : errorCodeOf(error) })
      if (!signal.aborted) throw reasonBehind(error, db.client)
      throw new CommandFailedError(
        new Error(`a command took longer than ${limitMs / 1000} s`, { cause: error }),
        false,
      )
    } finally {
      metrics?.times.observe({ command }, (performance.now() - began) / 1000)
    }
  }
  function write(
    kind: 'insert' | 'update' | 'delete',
    name: CollectionName,
    writes: Document,
    ids: readonly string[],
  ) {
    const command = { [kind]: name, ...writes, ordered: false, writeConcern: { w: 'majority' } }
    const writing = within(kind, async (signal): Promise<WriteReply> => {
      // The driver itself throws write concern errors, because such a write may be rolled back.
      const { n, writeErrors, operationTime } = await db.command(command, { ...PRIMARY, signal })
      if (operationTime !== undefined && !writtenAt?.greaterThan(operationTime))
        writtenAt = operationTime
      return { n, refused: writeErrors === undefined ? [] : refusedIn(writeErrors, name, ids) }
    })
    return writing.catch(async (error) => {
      if (!isConflict(error)) throw kind === 'delete' ? asRefused(error, name, ids[0] ?? '') : error
      // A failed command has not waited for a majority. The probe does, also for all writes before
      // it.
      await commitProbe(commands, 0)
      return allRefused(ids)
    })
  }
  function find<Found extends { _id: string }>(
    name: CollectionName,
    ids: readonly string[],
    // Sent even if it is `local`: the URL may name another level, with which the check of epochs
    // could miss one.
    level: ReadConcern = 'local',
    projection?: Document,
    condition?: Document,
  ): Promise<Found[]> {
    const collection = db.collection<{ _id: string }>(name, PRIMARY)
    const query = (some: readonly string[]) => {
      // A batch size above the number of ids, so that the first reply is the last.
      const how = {
        batchSize: IDS_PER_QUERY + 1,
        readConcern: { level },
        ...(projection && { projection }),
      }
      const filter = { _id: { $in: some }, ...(name === 'quotes' && shardsOf(some)), ...condition }
      return within('find', (signal) =>
        collection.find<Found>(filter, { ...how, signal }).toArray(),
      )
    }
    return ids.length === 0 || ids.length > IDS_PER_QUERY ? findInQueries(ids, query) : query(ids)
  }
  const findWithoutTexts: StoreCommands['findWithoutTexts'] = (ids, concern) =>
    find<QuoteWithoutText>('quotes', ids, concern, { text: 0 })
  const commands: StoreCommands = {
    writesPerCommand: WRITES_PER_COMMAND,
    find: (name, ids, concern) => find<Documents[typeof name]>(name, ids, concern),
    findWithoutTexts,
    findVersions: (name, ids, withEpoch) =>
      find<Version>(name, ids, 'local', MARKS, withEpoch && { 'meta.epoch': { $exists: true } }),
    insert(name, documents) {
      const ids = documents.map(({ _id }) => _id)
      return write('insert', name, { documents }, ids)
    },
    update(name, statements) {
      // If a statement writes many documents, MongoDB's error does not name the refused one. Name
      // the source that the quotes share.
      const ids = statements.map(({ q, multi }) => (multi ? (q.sourceId ?? '') : q._id))
      return write('update', name, { updates: statements }, ids)
    },
    removeQuotes(sourceId, ids, upTo) {
      const q = { _id: { $in: ids }, sourceId, 'meta.stamp': { $lte: upTo } }
      return write('delete', 'quotes', { deletes: [{ q, limit: 0 }] }, [sourceId])
    },
    removeSources(sources) {
      const deletes = sources.map(({ _id, meta }) => {
        return { q: { _id, 'meta.version': meta.version }, limit: 1 }
      })
      return write(
        'delete',
        'sources',
        { deletes },
        sources.map(({ _id }) => _id),
      )
    },
    ...rareCommands(db, within, () => writtenAt, options, findWithoutTexts),
  }
  return commands
}

/**
 * Returns a condition on `sourceId`, by which quotes are sharded: without it, a query asks all
 * shards. It costs little where nothing is sharded: on the emulators, queries of `IDS_PER_QUERY`
 * ids took 0.96 to 1.16 times as long.
 */
function shardsOf(quoteIds: readonly string[]): Document {
  return { sourceId: { $in: [...new Set(quoteIds.map(sourceIdIn))] } }
}

/**
 * A page of sources has about 10 MB. Smaller pages would be slow on the emulator, which walks
 * through the collection for each page.
 */
const PAGE = {
  projection: { wordCount: 1, quoteCount: 1, meta: 1 },
  sort: { _id: 1 },
  limit: 25_000,
} as const

/** The smallest page of sources: see `createSteps`. */
const LEAST_PAGE = 25

const QUERIES_AT_ONCE = 8

/**
 * With fewer documents than this, a walk through the collection proves nothing, because a planner
 * that weighs costs may use the index when there are more.
 */
const SMALL = 1_000

type Ask = (command: Document) => Promise<Document>

/**
 * Returns the indexes that workers create, by collection: the name and the field of each. Quotes
 * need an index only if the server walks the collection for a range of `_id`, or does not explain
 * its plan. Throws if MongoDB is unavailable.
 */
export async function indexesFor(
  ask: Ask,
  { listsSources }: Pick<CommandOptions, 'listsSources'>,
): Promise<Record<string, Record<string, string>>> {
  const quotes = (await walksRanges(ask)) && { quotes: { sourceId_1: 'sourceId' } }
  return { ...quotes, ...(listsSources && { sources: { listKey_1: 'meta.listKey' } }) }
}

async function walksRanges(ask: Ask): Promise<boolean> {
  // Ask for the quotes of one source, which need not be stored. To read all quotes, even a server
  // that uses the index would walk the collection.
  const find = { find: 'quotes', filter: { _id: quotesOf('some')._id } }
  try {
    const { queryPlanner } = await ask({ explain: find, verbosity: 'queryPlanner' })
    if (!JSON.stringify(queryPlanner).includes('COLLSCAN')) return false
    const { n } = await ask({ count: 'quotes' })
    return n === 0 || n >= SMALL
  } catch (error) {
    if (!(error instanceof MongoServerError)) throw error
    return true
  }
}

/**
 * Finds documents in queries of at most `idsPerQuery` ids, `QUERIES_AT_ONCE` of them in parallel.
 */
async function findInQueries<Found>(
  ids: readonly string[],
  query: (some: readonly string[]) => Promise<Found[]>,
  idsPerQuery = IDS_PER_QUERY,
): Promise<Found[]> {
  const found: Found[] = []
  await sendAll(chunksOf(ids, idsPerQuery), QUERIES_AT_ONCE, async (some) => {
    for (const document of await query(some)) found.push(document)
  })
  return found
}

/**
 * Makes the commands that few threads need: sums of quotes, a walk through all sources, indexes.
 */
function rareCommands(
  db: Db,
  within: <Reply>(command: string, send: (signal: AbortSignal) => Promise<Reply>) => Promise<Reply>,
  writtenAt: () => Timestamp | undefined,
  options: CommandOptions,
  findWithoutTexts: StoreCommands['findWithoutTexts'],
): Pick<StoreCommands, 'findQuotesOf' | 'sumQuotes' | 'scanSources' | 'prepare'> {
  const sources = db.collection<SourceDocument>('sources', PRIMARY)
  const quotes = db.collection<QuoteDocument>('quotes', PRIMARY)
  let hasSourceIndex = false
  /** Finds the single quotes that are deleted, without the ones that a later post stored again. */
  async function findGone(marked: readonly SourceOrTombstone[]): Promise<string[]> {
    const sourceOf = new Map(
      marked.flatMap((source) =>
        Object.keys(source.meta.deletion?.ofQuotes ?? {}).map((name) => [
          source._id + name,
          source,
        ]),
      ),
    )
    for (const quote of await findWithoutTexts([...sourceOf.keys()]))
      if (seenQuote({ ...quote, text: '' }, sourceOf.get(quote._id))) sourceOf.delete(quote._id)
    return [...sourceOf.keys()]
  }
  return {
    findQuotesOf(sourceId, { after, limit, upTo }) {
      const { _id: range, ...of } = quotesOf(sourceId)
      const filter = {
        ...of,
        _id: { $gt: after, $lt: range.$lt },
        ...(upTo !== undefined && { position: { $lte: upTo } }),
      }
      const how = {
        projection: { text: 0 },
        sort: { _id: 1 },
        limit,
        batchSize: limit + 1,
      } as const
      return within('find', (signal) =>
        quotes
          .find<QuoteWithoutText>(filter, { ...how, readConcern: { level: 'local' }, signal })
          .toArray(),
      )
    },
    async sumQuotes(sourceIds, { areNeighbours, marked = [] } = {}) {
      const gone = await findGone(marked)
      const sum = { _id: '$sourceId', wordCount: { $sum: '$wordCount' }, quoteCount: { $sum: 1 } }
      // With majority, because totals must not include a quote that is rolled back. After
      // `writtenAt`, because a new primary may be late to see quotes that the former one confirmed
      // before the sum's epoch.
      const afterClusterTime = writtenAt()
      const readConcern = { level: 'majority', ...(afterClusterTime && { afterClusterTime }) }
      const query = (some: readonly string[]) => {
        const isOfSome = (id: string) => some.includes(sourceIdIn(id))
        const seen = seenFilter(
          marked.filter(({ _id }) => isOfSome(_id)),
          gone.filter(isOfSome),
        )
        // A stage of its own, because the emulator uses no index for a condition with `$nor`.
        const stages = [quotesOf(...some), ...(seen.$nor ? [seen] : [])].map(($match) => ({
          $match,
        }))
        const pipeline = [...stages, { $group: sum }]
        // A batch size above the number of sums, so that the first reply is the last.
        const command = {
          aggregate: 'quotes',
          pipeline,
          cursor: { batchSize: some.length + 1 },
          readConcern,
        }
        return within('aggregate', async (signal): Promise<(QuoteTotals & { _id: string })[]> => {
          const { cursor } = await db.command(command, { ...PRIMARY, signal })
          if (Number(cursor.id) !== 0)
            throw new Error('MongoDB did not send all sums in its first reply')
          return cursor.firstBatch
        })
      }
      // Without an index of `sourceId`, distant sources are summed one by one: a single range of
      // `_id` would contain other sources' quotes, and DocumentDB walks the collection if a query
      // has 40 ranges.
      return findInQueries(sourceIds, query, areNeighbours || hasSourceIndex ? IDS_PER_QUERY : 1)
    },
    // Reads in pages, because a cursor that is read slowly has no time limit.
    async *scanSources() {
      const inSteps = createSteps(PAGE.limit, LEAST_PAGE)
      for (let after = ''; ; ) {
        const filter = { _id: { $gt: after } }
        const { page, limit } = await inSteps((limit) =>
          within('find', async (signal) => {
            return {
              page: await sources.find<SourceTotals>(filter, { ...PAGE, limit, signal }).toArray(),
              limit,
            }
          }),
        )
        const { own = [], foreign = [] } = Object.groupBy(page, ({ meta }) =>
          meta === undefined ? 'foreign' : 'own',
        )
        yield { own, foreign: foreign.map(({ _id }) => _id) }
        if (page.length < limit) return
        after = page.at(-1)?._id ?? after
      }
    },
    async prepare() {
      const ask: Ask = (command) =>
        within(Object.keys(command)[0] ?? '', (signal) =>
          db.command(command, { ...PRIMARY, signal }),
        )
      const wanted = await indexesFor(ask, options)
      hasSourceIndex = 'quotes' in wanted
      for (const [collection, fields] of Object.entries(wanted)) {
        const indexes = Object.entries(fields).map(([name, field]) => ({
          name,
          key: { [field]: 1 },
        }))
        await ask({ createIndexes: collection, indexes }).catch((error) => {
          // MongoDB continues to build after its client has left, so a timeout is no failure.
          if (!isTimeOut(error)) throw error
        })
      }
    },
  }
}
