import type { Document, ObjectId } from 'mongodb'
import { findByIds } from './find-by-ids.ts'
import type { GuardedDocument, UpdateStatement, WriteCommands } from './write-commands.ts'

/** A write of one document that takes only where the document is absent (`insert`), or still is as it was read. */
export type GuardedWrite = GuardedInsert | GuardedUpdate

interface GuardedInsert {
  insert: GuardedDocument
}

type GuardedUpdate = { id: string; read: ObjectId } & (
  | { replace: GuardedDocument }
  | { update: { $set: Document; $unset?: Document } }
)

/** Serialising is synchronous, and a server may hold a collection for a whole command: so many documents at a time let others in between. */
const WRITES_A_COMMAND = 250
/** A command must not be larger than 16 MiB, and a character takes three bytes at most. */
const CHARACTERS_A_COMMAND = 3_000_000

/**
 * Writes all that its guards let through and gives the ids of the documents that they refused: somebody else was there first. Each write must
 * set `meta.version` to `version`, which no other write ever sets.
 *
 * @param mayWrite asked before each command; throws where nothing more may be written.
 * @throws {WriteFailedError} where the server refuses a write for another reason.
 */
export async function writeGuarded(
  commands: WriteCommands,
  writes: readonly GuardedWrite[],
  version: ObjectId,
  mayWrite: () => void = () => {},
): Promise<Set<string>> {
  const refused = new Set<string>()
  for (const inserts of chunksOf(writes.filter(isInsert))) {
    mayWrite()
    const documents = inserts.map(({ insert }) => insert)
    const { duplicates } = await commands.run({ insert: documents })
    for (const at of duplicates) refused.add(documents[at]?._id ?? '')
  }
  for (const updates of chunksOf(writes.filter(isUpdate))) {
    mayWrite()
    const { n } = await commands.run({ update: updates.map(statementOf) })
    if (n === updates.length) continue
    const ids = updates.map(({ id }) => id)
    for (const id of await findOthers(commands, ids, version)) refused.add(id)
  }
  return refused
}

export function isInsert(write: GuardedWrite): write is GuardedInsert {
  return 'insert' in write
}

export function isUpdate(write: GuardedWrite): write is GuardedUpdate {
  return 'id' in write
}

function* chunksOf<Write extends GuardedWrite>(writes: readonly Write[]): Generator<Write[]> {
  let chunk: Write[] = []
  let characters = 0
  for (const write of writes) {
    const more = charactersOf(write)
    if (chunk.length === WRITES_A_COMMAND || (chunk.length > 0 && characters + more > CHARACTERS_A_COMMAND)) {
      yield chunk
      chunk = []
      characters = 0
    }
    chunk.push(write)
    characters += more
  }
  if (chunk.length > 0) yield chunk
}

/** All that is long in a document is a string of its own. */
function charactersOf(write: GuardedWrite): number {
  const document: Document = 'insert' in write ? write.insert : 'replace' in write ? write.replace : {}
  let characters = 0
  for (const name in document) if (typeof document[name] === 'string') characters += document[name].length
  return characters
}

function statementOf(write: GuardedUpdate): UpdateStatement {
  return { q: { _id: write.id, 'meta.version': write.read }, u: 'replace' in write ? write.replace : write.update }
}

/** Those documents whose last write is not this one. */
async function findOthers({ collection }: WriteCommands, ids: string[], version: ObjectId): Promise<string[]> {
  const others = new Set(ids)
  const projection = { 'meta.version': 1 }
  const written = await findByIds(ids, (some, options) =>
    collection.find({ _id: { $in: some } }, { ...options, projection }).toArray(),
  )
  for (const document of written) if (document.meta.version.equals(version)) others.delete(document._id)
  return [...others]
}
