// Writes under guard: opens the sources of a round, and writes the quotes. A guarded write takes effect only if no other
// process wrote its document since the document was read.
import type { Document, ObjectId } from 'mongodb'
import type {
  OpenThread,
  QuoteDocument,
  QuoteDraft,
  SourceDocument,
  ThreadRound,
  WriterBatch,
  WriterToken,
} from '../documents.ts'
import type { QuoteTotals, Runtime, StoreCommands, UpdateStatement } from '../mongodb/commands.ts'
import { isMine, WRITE_WITHIN_MS } from './tokens.ts'

export interface WriteDeps {
  commands: StoreCommands
  runtime: Runtime
}

/** This process was paused for more than `WRITE_WITHIN_MS`, and others no longer count on its quotes. */
export class PausedTooLongError extends Error {}

/**
 * Opens or reserves each source in one guarded write, and returns the threads that were not refused.
 *
 * @param batch is absent if no quote has to be written.
 * @param toSum reserves all sources for a sum.
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

type NewToken = Omit<WriterToken, 'request'> | undefined

function planOpening(
  round: ThreadRound,
  toSum: boolean,
  version: ObjectId,
  token: NewToken,
): OpenThread & { write?: GuardedWrite } {
  const { stored, plan, quoteWrites } = round
  const before = stored.source
  const tokens = tokensOf(round, toSum, token)
  if (before !== undefined && (toSum || isCoverBesideQuotes(round, before)))
    return { round, isFinal: false, ...planReservation(before, tokens, version) }
  if (before !== undefined && needsNoWrite(round)) return { round, isFinal: true, source: before }
  const { tokens: _, ...planned } = plan.source.document.meta
  const source: SourceDocument = {
    ...plan.source.document,
    ...totalsAfter(before ?? plan.source.document, quoteWrites),
    meta: { ...planned, version, ...(tokens.length > 0 && { tokens }) },
  }
  const write = before === undefined ? { insert: source } : guardedUpdate(before, source)
  return { round, isFinal: true, source, write }
}

/** A new cover must not be stored before the changed quotes: their old values would get a later stamp than theirs. */
function isCoverBesideQuotes({ plan, quoteWrites }: ThreadRound, stored: SourceDocument): boolean {
  return plan.source.document.meta.cover !== stored.meta.cover && quoteWrites.length > 0
}

/** Writes the source as it was, with these tokens. This refuses the writes of processes that read the source before. */
export function planReservation(
  stored: SourceDocument,
  tokens: WriterToken[],
  version: ObjectId,
): { source: SourceDocument; write: GuardedWrite } {
  const source = { ...stored, meta: { ...stored.meta, version, tokens } }
  const update = { $set: { 'meta.version': version, 'meta.tokens': tokens } }
  return { source, write: guardedUpdate(stored, update) }
}

/** Returns the open tokens of others and, if quotes are written or summed, one for each of our requests. */
function tokensOf({ work, stored, quoteWrites }: ThreadRound, toSum: boolean, token: NewToken): WriterToken[] {
  const before = stored.source?.meta.tokens ?? []
  if (token === undefined || (quoteWrites.length === 0 && !toSum)) return before
  const others = before.filter((one) => !isMine(work, one))
  return [...others, ...work.requests.map(({ id }) => ({ request: id, ...token }))]
}

/** Returns whether the thread is stored already as the requests make it. */
export function needsNoWrite({ stored, plan, quoteWrites }: ThreadRound): boolean {
  return stored.source !== undefined && quoteWrites.length === 0 && !plan.source.advanced && !plan.source.changed
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
 * Writes the quotes of all opened threads together, and returns the threads whose quotes are all written.
 *
 * @param openedAt is a moment before the sources were opened, by the monotonic clock.
 * @throws {PausedTooLongError}
 */
export async function writeQuotes(
  { commands, runtime }: WriteDeps,
  threads: readonly OpenThread[],
  openedAt: number,
  version: ObjectId,
): Promise<OpenThread[]> {
  const writes = threads.flatMap(({ round }) =>
    round.quoteWrites.map(({ stored, document }) =>
      stored === undefined ? { insert: document } : guardedUpdate(stored, document),
    ),
  )
  const refused = await writeGuarded(commands, 'quotes', writes, version, () => {
    if (runtime.monotonic() - openedAt > WRITE_WITHIN_MS)
      throw new PausedTooLongError(`this process was paused for more than ${WRITE_WITHIN_MS / 1000} s amid a batch`)
  })
  return threads.filter(({ round }) => round.quoteWrites.every(({ document }) => !refused.has(document._id)))
}

/** Inserts a document if it is absent, or updates one if it still has the version that was read. */
export type GuardedWrite = { insert: SourceDocument | QuoteDocument } | GuardedUpdate

interface GuardedUpdate extends UpdateStatement {
  q: { _id: string; 'meta.version': ObjectId }
}

/** Makes the update of a document that was read with this version. */
export function guardedUpdate(
  { _id, meta }: Pick<SourceDocument | QuoteDocument, '_id' | 'meta'>,
  u: Document,
): GuardedUpdate {
  return { q: { _id, 'meta.version': meta.version }, u }
}

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
 */
export async function writeGuarded(
  commands: StoreCommands,
  name: 'sources' | 'quotes',
  writes: readonly GuardedWrite[],
  version: ObjectId,
  checkTime: () => void = () => {},
): Promise<Set<string>> {
  const refused = new Set<string>()
  const inserts = writes.flatMap((write) => ('insert' in write ? [write.insert] : []))
  const updates = writes.flatMap((write) => ('insert' in write ? [] : [write]))
  const { writesPerCommand } = commands
  await sendAll(chunksOf(inserts, writesPerCommand, charactersOf), async (documents) => {
    checkTime()
    const { duplicates } = await commands.insert(name, documents)
    for (const at of duplicates) refused.add(documents[at]?._id ?? '')
  })
  await sendAll(
    chunksOf(updates, writesPerCommand, ({ u }) => charactersOf(u)),
    async (statements) => {
      checkTime()
      const { n } = await commands.update(name, statements)
      if (n === statements.length) return
      const ids = statements.map(({ q }) => q._id)
      const versions = await commands.findVersions(name, ids)
      const written = new Set(versions.filter(({ meta }) => meta.version.equals(version)).map(({ _id }) => _id))
      for (const id of ids) if (!written.has(id)) refused.add(id)
    },
  )
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

/** Returns the items in chunks for one command each. */
export function* chunksOf<Item>(
  items: readonly Item[],
  maxItems: number,
  charactersOf: (item: Item) => number,
): Generator<Item[]> {
  let chunk: Item[] = []
  let characters = 0
  for (const item of items) {
    const more = charactersOf(item)
    if (chunk.length === maxItems || (chunk.length > 0 && characters + more > CHARACTERS_PER_COMMAND)) {
      yield chunk
      chunk = []
      characters = 0
    }
    chunk.push(item)
    characters += more
  }
  if (chunk.length > 0) yield chunk
}

/** Everything long in a document is a string field of its own. */
function charactersOf(document: Document): number {
  let characters = 0
  for (const name in document) if (typeof document[name] === 'string') characters += document[name].length
  return characters
}
