// Sends the store's commands to MongoDB.
import { setTimeout as delay } from 'node:timers/promises'
import { type Db, type Document, ObjectId, type Timestamp } from 'mongodb'
import type { QuoteWithoutText } from '../documents.ts'
import { sourceIdIn } from '../ids.ts'
import {
  allRefused,
  type CollectionName,
  type CommandOptions,
  type Documents,
  IDS_PER_QUERY,
  PRIMARY,
  type ReadConcern,
  type StoreCommands,
  type Version,
  type WriteReply,
} from './commands.ts'
import { explained, commitProbe } from './connect-store.ts'
import { findInQueries, rareCommands } from './rare-commands.ts'
import { errorCodeOf, isConflict, refusedIn, CommandFailedError } from './store-errors.ts'

export type Runtime = typeof processRuntime

/** The clocks, random numbers and ids of this process. Tests replace them. */
export const processRuntime = {
  now: Date.now,
  /** Milliseconds by a clock that never jumps. */
  monotonic: () => performance.now(),
  /** Keeps no process alive. */
  delay: (ms: number): Promise<void> => delay(ms, undefined, { ref: false }),
  random: Math.random,
  /** Returns an id that no other call ever returns, on any machine. */
  newId: () => new ObjectId(),
}

/** A command ends within this time, even if its connection hangs. */
const COMMAND_MS = 10_000
/** Small, because serialising blocks the event loop, and a server may lock a collection for a command. */
const WRITES_PER_COMMAND = 250
const MARKS = { 'meta.version': 1, 'meta.epoch': 1 } as const

/**
 * Makes the commands. A command throws a `CommandFailedError` at its time limit, a `RefusedWriteError` if MongoDB refused a
 * document, otherwise the driver's error. The driver's `bulkWrite` is not used: it is slower, and does not distinguish a
 * network error from a refused write.
 */
export function mongoCommands(db: Db, options: CommandOptions = {}): StoreCommands {
  const { limitMs = COMMAND_MS, metrics } = options
  /** When the last write took effect, by the cluster's clock. A MongoDB without replicas has none. */
  let writtenAt: Timestamp | undefined
  /** Sends a command with a signal: otherwise the driver (7.9) waits for ever for `drain` on a destroyed socket. */
  async function within<Reply>(command: string, send: (signal: AbortSignal) => Promise<Reply>): Promise<Reply> {
    const began = performance.now()
    const signal = AbortSignal.timeout(limitMs)
    try {
      return await send(signal)
    } catch (error) {
      metrics?.errors.inc({ code: signal.aborted ? 'timeout' : errorCodeOf(error) })
      if (!signal.aborted) throw explained(error, db.client)
      throw new CommandFailedError(new Error(`a command took longer than ${limitMs / 1000} s`, { cause: error }), false)
    } finally {
      metrics?.times.observe({ command }, (performance.now() - began) / 1000)
    }
  }
  function write(kind: 'insert' | 'update', name: CollectionName, writes: Document, ids: readonly string[]) {
    const command = { [kind]: name, ...writes, ordered: false, writeConcern: { w: 'majority' } }
    const writing = within(kind, async (signal): Promise<WriteReply> => {
      // The driver itself throws a write concern error: the write may be rolled back.
      const { n, writeErrors, operationTime } = await db.command(command, { ...PRIMARY, signal })
      if (operationTime !== undefined && !writtenAt?.greaterThan(operationTime)) writtenAt = operationTime
      return { n, refused: writeErrors === undefined ? [] : refusedIn(writeErrors, name, ids) }
    })
    return writing.catch(async (error) => {
      if (!isConflict(error)) throw error
      // A command that failed has not waited for a majority. A probe waits for one, and so for all writes before it.
      await commitProbe(commands, 0)
      return allRefused(ids)
    })
  }
  function find<Found extends { _id: string }>(
    name: CollectionName,
    ids: readonly string[],
    // Named even if `local`: the URL may name another level, by which the check of epochs could miss one.
    level: ReadConcern = 'local',
    projection?: Document,
    condition?: Document,
  ): Promise<Found[]> {
    const collection = db.collection<{ _id: string }>(name, PRIMARY)
    const query = (some: readonly string[]) => {
      // One more than the ids, so that the first reply is the last.
      const how = { batchSize: IDS_PER_QUERY + 1, readConcern: { level }, ...(projection && { projection }) }
      const filter = { _id: { $in: some }, ...(name === 'quotes' && shardsOf(some)), ...condition }
      return within('find', (signal) => collection.find<Found>(filter, { ...how, signal }).toArray())
    }
    return ids.length === 0 || ids.length > IDS_PER_QUERY ? findInQueries(ids, query) : query(ids)
  }
  const commands: StoreCommands = {
    writesPerCommand: WRITES_PER_COMMAND,
    find: (name, ids, concern) => find<Documents[typeof name]>(name, ids, concern),
    findWithoutTexts: (ids, concern) => find<QuoteWithoutText>('quotes', ids, concern, { text: 0 }),
    findVersions: (name, ids, withEpoch) =>
      find<Version>(name, ids, 'local', MARKS, withEpoch && { 'meta.epoch': { $exists: true } }),
    insert(name, documents) {
      const ids = documents.map(({ _id }) => _id)
      return write('insert', name, { documents }, ids)
    },
    update(name, statements) {
      // MongoDB's error for a statement on many documents does not name the refused one. Quotes have a source in common.
      const ids = statements.map(({ q, multi }) => (multi ? (q.sourceId ?? '') : q._id))
      return write('update', name, { updates: statements }, ids)
    },
    ...rareCommands(db, within, () => writtenAt, options),
  }
  return commands
}

/**
 * Quotes are sharded by their sources: without this, a query asks all shards. Where nothing is sharded, it costs little:
 * on the emulators, 0.96 to 1.16 times the time for `IDS_PER_QUERY` ids.
 */
function shardsOf(quoteIds: readonly string[]): Document {
  return { sourceId: { $in: [...new Set(quoteIds.map(sourceIdIn))] } }
}
