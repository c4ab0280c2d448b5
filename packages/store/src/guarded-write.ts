import type { Document, ObjectId } from 'mongodb'
import type { StoreCommands, VersionedDocument } from './commands.ts'

// Writes documents under guards: a write takes effect only where nobody else wrote the document since it was read.

/** A write of one document. It takes effect only where the document is absent (`insert`), or still has the version that was read. */
export type GuardedWrite = GuardedInsert | GuardedUpdate

interface GuardedInsert {
  insert: VersionedDocument
}

type GuardedUpdate = { id: string; read: ObjectId } & (
  | { replace: VersionedDocument }
  | { update: { $set: Document; $unset?: Document } }
)

/** Serialising is synchronous, and a server may lock a collection for a whole command: this many documents at a time let others in between. */
const WRITES_PER_COMMAND = 250
/** A command must not exceed 16 MiB, and a character takes three bytes at most. */
const CHARACTERS_PER_COMMAND = 3_000_000
const IDS_PER_QUERY = 200
const QUERIES_AT_ONCE = 8

/**
 * Writes all that the guards let through and returns the ids of the documents that they refused. Each write must set `meta.version` to `version`, which no
 * other write ever sets.
 *
 * @param checkTime is called before each command and throws where it is too late to write.
 * @throws {WriteFailedError} where the server refuses a write for another reason.
 */
export async function writeGuarded(
  commands: Pick<StoreCommands, 'insert' | 'update' | 'findVersions'>,
  name: 'sources' | 'quotes',
  writes: readonly GuardedWrite[],
  version: ObjectId,
  checkTime: () => void = () => {},
): Promise<Set<string>> {
  const refused = new Set<string>()
  for (const inserts of chunksOf(writes.filter(isInsert))) {
    checkTime()
    const { duplicates } = await commands.insert(
      name,
      inserts.map(({ insert }) => insert),
    )
    for (const at of duplicates) refused.add(inserts[at]?.insert._id ?? '')
  }
  for (const updates of chunksOf(writes.filter(isUpdate))) {
    checkTime()
    const { n } = await commands.update(name, updates.map(statementOf))
    if (n === updates.length) continue
    const ids = updates.map(({ id }) => id)
    const versions = await findByIds(ids, (some) => commands.findVersions(name, some))
    const written = new Set(versions.filter(({ meta }) => meta.version.equals(version)).map(({ _id }) => _id))
    for (const id of ids) if (!written.has(id)) refused.add(id)
  }
  return refused
}

/** Reads documents by their ids in queries of 200, several at once. */
export async function findByIds<Found>(
  ids: readonly string[],
  find: (some: string[]) => Promise<Found[]>,
): Promise<Found[]> {
  const found: Found[] = []
  let next = 0
  async function query(): Promise<void> {
    while (next < ids.length) {
      const some = ids.slice(next, next + IDS_PER_QUERY)
      next += IDS_PER_QUERY
      for (const document of await find(some)) found.push(document)
    }
  }
  await Promise.all(Array.from({ length: Math.min(QUERIES_AT_ONCE, Math.ceil(ids.length / IDS_PER_QUERY)) }, query))
  return found
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
