// Sends the store's commands to MongoDB.
import { setTimeout as delay } from 'node:timers/promises'
import { type Db, type Document, ObjectId } from 'mongodb'
import type { Runtime, StoreCommands, WriteReply } from './commands.ts'
import { mongoReads, PRIMARY } from './mongo-reads.ts'
import { CommandTimedOutError, duplicatesIn } from './store-errors.ts'

/** The clocks, random numbers and ids of this process. */
export const processRuntime: Runtime = {
  now: Date.now,
  monotonic: () => performance.now(),
  delay: (ms) => delay(ms, undefined, { ref: false }),
  random: Math.random,
  newId: () => new ObjectId(),
}

/** A command ends within this time, even if its connection hangs. */
const COMMAND_MS = 10_000

/**
 * The store's commands on a MongoDB database, with majority write concern. The driver's `bulkWrite` is slower, and
 * does not distinguish a network error from a refused write. Each method throws the driver's error if the outcome is
 * unknown, or a `CommandTimedOutError`.
 *
 * @param limitMs the time limit of each command.
 */
export function mongoCommands(db: Db, limitMs = COMMAND_MS): StoreCommands {
  const send = (command: Document) => withinTime(limitMs, (signal) => db.command(command, { ...PRIMARY, signal }))
  async function write(command: Document): Promise<WriteReply> {
    // The driver itself throws a write concern error: the write may be rolled back.
    const { n, writeErrors } = await send({ ...command, ordered: false, writeConcern: { w: 'majority' } })
    return { n, duplicates: writeErrors === undefined ? [] : duplicatesIn(writeErrors) }
  }
  return {
    ...mongoReads(db, (read) => withinTime(limitMs, read)),
    insert: (name, documents) => write({ insert: name, documents }),
    update: (name, statements) => write({ update: name, updates: statements }),
    createIndexes: async () =>
      void (await send({ createIndexes: 'quotes', indexes: [{ key: { sourceId: 1 }, name: 'sourceId_1' }] })),
  }
}

/**
 * Sends a command with a signal, which ends each wait of the command: the driver (7.9) waits for ever for `drain` on a
 * socket that was destroyed, and `socketTimeoutMS` does not end that.
 */
async function withinTime<Reply>(ms: number, send: (signal: AbortSignal) => Promise<Reply>): Promise<Reply> {
  const signal = AbortSignal.timeout(ms)
  try {
    return await send(signal)
  } catch (error) {
    throw signal.aborted ? new CommandTimedOutError(ms, error) : error
  }
}
