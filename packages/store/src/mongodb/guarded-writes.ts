// Sends guarded writes: each takes effect only if no other process wrote its document since it was read.
import type { Document, ObjectId } from 'mongodb'
import type { GuardedInsert, GuardedUpdate, GuardedWrite, StoreCommands } from './commands.ts'
import { findByIds } from './mongo-reads.ts'

/** Serialising blocks the event loop, and a server may lock a collection for a command. */
const WRITES_PER_COMMAND = 250
/** A command must not exceed 16 MiB, and a character takes three bytes at most. */
const CHARACTERS_PER_COMMAND = 3_000_000
/** Beyond this time for the first command MongoDB is slow, and `WRITES_AT_ONCE` others are sent at once. */
const SLOW_MS = 500
const WRITES_AT_ONCE = 4

/**
 * Sends all writes, and returns the ids of the refused ones. Each write must set `meta.version` to `version`, which no
 * other write sets.
 *
 * @param checkTime is called before each command and throws if it is too late to write.
 * @throws {WriteFailedError} if the server refuses a write for another reason.
 */
export async function writeGuarded(
  commands: Pick<StoreCommands, 'insert' | 'update' | 'findVersions'>,
  name: 'sources' | 'quotes',
  writes: readonly GuardedWrite[],
  version: ObjectId,
  checkTime: () => void = () => {},
): Promise<Set<string>> {
  const refused = new Set<string>()
  await sendAll(chunksOf(writes.filter(isInsert)), async (inserts) => {
    checkTime()
    const { duplicates } = await commands.insert(
      name,
      inserts.map(({ insert }) => insert),
    )
    for (const at of duplicates) refused.add(inserts[at]?.insert._id ?? '')
  })
  await sendAll(chunksOf(writes.filter(isUpdate)), async (updates) => {
    checkTime()
    const { n } = await commands.update(name, updates.map(statementOf))
    if (n === updates.length) return
    const ids = updates.map(({ id }) => id)
    const versions = await findByIds(ids, (some) => commands.findVersions(name, some))
    const written = new Set(versions.filter(({ meta }) => meta.version.equals(version)).map(({ _id }) => _id))
    for (const id of ids) if (!written.has(id)) refused.add(id)
  })
  return refused
}

/** Sends commands one by one or, if MongoDB is slow, several at once. After a failure it begins no other. */
async function sendAll<Chunk>(chunks: Generator<Chunk>, send: (chunk: Chunk) => Promise<void>): Promise<void> {
  const first = chunks.next()
  if (first.done === true) return
  const began = performance.now()
  await send(first.value)
  async function sendRest(): Promise<void> {
    // A loop that throws ends the generator, and so the other loops.
    for (const chunk of chunks) await send(chunk)
  }
  const isSlow = performance.now() - began > SLOW_MS
  await Promise.all(Array.from({ length: isSlow ? WRITES_AT_ONCE : 1 }, sendRest))
}

const isInsert = (write: GuardedWrite): write is GuardedInsert => 'insert' in write
const isUpdate = (write: GuardedWrite): write is GuardedUpdate => 'id' in write

function* chunksOf<Write extends GuardedWrite>(writes: readonly Write[]): Generator<Write[]> {
  let chunk: Write[] = []
  let characters = 0
  for (const write of writes) {
    const more = charactersOf(write)
    if (chunk.length === WRITES_PER_COMMAND || (chunk.length > 0 && characters + more > CHARACTERS_PER_COMMAND)) {
      yield chunk
      chunk = []
      characters = 0
    }
    chunk.push(write)
    characters += more
  }
  if (chunk.length > 0) yield chunk
}

/** Everything long in a document is a string field of its own. */
function charactersOf(write: GuardedWrite): number {
  const document: Document = 'insert' in write ? write.insert : 'replace' in write ? write.replace : {}
  let characters = 0
  for (const name in document) if (typeof document[name] === 'string') characters += document[name].length
  return characters
}

function statementOf(write: GuardedUpdate) {
  return { q: { _id: write.id, 'meta.version': write.read }, u: 'replace' in write ? write.replace : write.update }
}
