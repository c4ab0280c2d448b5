// Writes the planned threads of one round: opens the sources, then writes the quotes. Each write is guarded: it takes effect only if no other process
// wrote the document since it was read.
import type { Document, ObjectId } from 'mongodb'
import type { OpenThread, QuoteDraft, SourceDocument, ThreadRound, WriterBatch, WriterToken } from '../documents.ts'
import type {
  GuardedInsert,
  GuardedUpdate,
  GuardedWrite,
  QuoteTotals,
  Runtime,
  StoreCommands,
} from '../mongodb/commands.ts'
import { findByIds } from '../mongodb/mongo-reads.ts'
import { isMine, kindOf, planReservation, WRITE_WITHIN_MS } from './tokens.ts'

/** What a write needs. */
export interface WriteDeps {
  commands: StoreCommands
  runtime: Runtime
}

/** This process was paused for so long that others no longer count on its quotes. */
export class PausedTooLongError extends Error {}

/**
 * Opens or reserves each source in one guarded write. A source that gets quotes also gets a token. Other processes may have it open too: each adds only its own
 * difference. Returns the threads that were not refused.
 *
 * @param batch is absent if no quote has to be written.
 * @param toSum whether all of these threads must be summed: decided once, because a token may become stale at any moment.
 */
export async function openSources(
  { commands, runtime }: WriteDeps,
  rounds: readonly ThreadRound[],
  batch: WriterBatch | undefined,
  toSum: boolean,
): Promise<OpenThread[]> {
  const version = runtime.newId()
  const token = batch && { ...batch, since: new Date(runtime.now()), ...(toSum && { excludes: runtime.newId() }) }
  const openings = rounds.map((round) => planOpening(round, toSum, version, token))
  const writes = openings.flatMap(({ write }) => write ?? [])
  const refused = await writeGuarded(commands, 'sources', writes, version)
  return openings.filter(({ round }) => !refused.has(round.work.id))
}

/** The thread is stored already as the requests make it. */
export function needsNoWrite({ stored, plan, quoteWrites }: ThreadRound): boolean {
  return stored.source !== undefined && quoteWrites.length === 0 && !plan.source.advanced && !plan.source.changed
}

type Opening = OpenThread & { write?: GuardedWrite }
type NewToken = Omit<WriterToken, 'request'> | undefined

function planOpening(round: ThreadRound, toSum: boolean, version: ObjectId, token: NewToken): Opening {
  const { stored, plan, quoteWrites } = round
  const kind = toSum ? 'sum' : stored.source === undefined ? 'final' : kindOf(round, stored.source)
  const tokens = tokensOf(round, kind, token)
  if (kind !== 'final') return planReservation(round, kind, version, tokens)
  if (stored.source !== undefined && needsNoWrite(round)) return { round, kind, source: stored.source }
  const { tokens: _, ...planned } = plan.source.document.meta
  const source: SourceDocument = {
    ...plan.source.document,
    ...totalsAfter(stored.source ?? plan.source.document, quoteWrites),
    meta: { ...planned, version, ...(tokens.length > 0 && { tokens }) },
  }
  const read = stored.source?.meta.version
  const write = read === undefined ? { insert: source } : { id: source._id, read, replace: source }
  return { round, kind, source, write }
}

/** Returns the open tokens of others and, if quotes are written or summed, one for each of our requests. */
function tokensOf(
  { work, stored, quoteWrites }: ThreadRound,
  kind: OpenThread['kind'],
  token: NewToken,
): WriterToken[] {
  const before = stored.source?.meta.tokens ?? []
  if (token === undefined || (quoteWrites.length === 0 && kind !== 'sum')) return before
  const others = before.filter((one) => !isMine(work, one))
  return [...others, ...work.requests.map(({ id }) => ({ request: id, ...token }))]
}

/** Returns the totals after these writes. */
export function totalsAfter({ wordCount, quoteCount }: QuoteTotals, writes: readonly QuoteDraft[]): QuoteTotals {
  for (const { stored, document } of writes) {
    wordCount += document.wordCount - (stored?.wordCount ?? 0)
    if (stored === undefined) quoteCount += 1
  }
  return { wordCount, quoteCount }
}

/**
 * Writes the quotes of all opened threads together and returns the ids of the refused ones.
 *
 * @param openedAt is a moment before the sources were opened, by the monotonic clock.
 * @throws {PausedTooLongError}
 */
export async function writeQuotes(
  { commands, runtime }: WriteDeps,
  threads: readonly OpenThread[],
  openedAt: number,
  version: ObjectId,
): Promise<Set<string>> {
  const writes = threads.flatMap(({ round }) =>
    round.quoteWrites.map(
      ({ stored, document }): GuardedWrite =>
        stored === undefined
          ? { insert: document }
          : { id: document._id, read: stored.meta.version, replace: document },
    ),
  )
  return writeGuarded(commands, 'quotes', writes, version, () => {
    if (runtime.monotonic() - openedAt > WRITE_WITHIN_MS)
      throw new PausedTooLongError(`this process was paused for more than ${WRITE_WITHIN_MS / 1000} s amid a batch`)
  })
}

/** Serialising is synchronous, and a server may lock a collection for a whole command, so a command has at most this many documents and other work runs in between. */
const WRITES_PER_COMMAND = 250
/** A command must not exceed 16 MiB, and a character takes three bytes at most. */
const CHARACTERS_PER_COMMAND = 3_000_000
/** If the first of several commands takes longer than this, in ms, MongoDB is slow, and the others are sent so many at once. */
const SLOW_MS = 500
const WRITES_AT_ONCE = 4

/**
 * Sends all writes and returns the ids of the documents whose guard refused the write. Each write must set `meta.version` to `version`, which no
 * other write ever sets.
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

/** Sends commands one after the other or, if MongoDB is slow, several at once: else a large batch would take too long. After a failure it begins no other. */
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
