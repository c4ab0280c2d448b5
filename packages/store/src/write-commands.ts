import type { Collection, Db, Document, ObjectId } from 'mongodb'

/** What guarded writes need to know of a document; the rest is the caller's. */
export interface GuardedDocument extends Document {
  _id: string
  meta: { version: ObjectId }
}

/** MongoDB's update statement. */
export interface UpdateStatement {
  q: Document
  u: Document
}

/** One command, which does all that it can (`ordered: false`). */
export type WriteCommand = { insert: GuardedDocument[] } | { update: UpdateStatement[] }

/** What a command came to. */
export interface Written {
  /** Documents that were inserted, or that some statement matched. */
  n: number
  /** Inserts that found a document of that `_id`, by their place. */
  duplicates: number[]
}

/** The writes of one collection. */
export interface WriteCommands {
  collection: Collection<GuardedDocument>
  /**
   * @throws {WriteFailedError} where the server did not do all of it for another reason than a duplicate.
   * @throws the driver's error where nothing is known, or not that a majority has it.
   */
  run(command: WriteCommand): Promise<Written>
}

/** The server did not do what it was told. */
export class WriteFailedError extends Error {
  /** MongoDB's error code. */
  readonly code: number

  constructor(message: string, code: number) {
    super(message)
    this.name = 'WriteFailedError'
    this.code = code
  }
}

interface Fault {
  index: number
  code: number
  errmsg: string
}

const DUPLICATE_KEY = 11_000

/**
 * Sends a collection's writes as commands of their own, with majority write concern: of an error, the driver's `bulkWrite` does not tell whether it was the
 * server's or the network's, and takes longer.
 */
export function writeCommandsOf(db: Db, name: string): WriteCommands {
  return {
    collection: db.collection(name, { readPreference: 'primary' }),
    async run(command) {
      const what =
        'insert' in command ? { insert: name, documents: command.insert } : { update: name, updates: command.update }
      const reply = await db.command({ ...what, ordered: false, writeConcern: { w: 'majority' } })
      return readReply(reply)
    },
  }
}

function readReply(reply: Document): Written {
  const faults: Fault[] = reply.writeErrors ?? []
  const other = faults.find(({ code }) => code !== DUPLICATE_KEY)
  if (other !== undefined) throw new WriteFailedError(other.errmsg, other.code)
  return { n: reply.n, duplicates: faults.map(({ index }) => index) }
}
