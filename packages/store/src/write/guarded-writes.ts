// Opens the sources of a round, and writes the quotes. Each write is guarded: it takes effect only
// if no other process has written the document since it was read.
import { isDeepStrictEqual } from 'node:util'
import { textLength } from '@sluice/contract'
import type { ObjectId } from 'mongodb'
import type {
  GuardedWrite,
  OpenThread,
  QuoteDocument,
  QuoteDraft,
  QuoteWithoutText,
  SourceOrTombstone,
  ThreadRound,
  WriterBatch,
  WriterToken,
} from '../documents.ts'
import { compareIds } from '../ids.ts'
import {
  CHARACTERS_PER_COMMAND,
  chunksOf,
  type QuoteTotals,
  type StoreCommands,
  sendInChunks,
  type UpdateStatement,
} from '../mongodb/commands.ts'
import type { Runtime } from '../mongodb/mongo-commands.ts'
import { isMine, WRITE_WITHIN_MS } from './tokens.ts'

export interface WriteDeps {
  commands: StoreCommands
  runtime: Runtime
}

/**
 * A batch took more than `WRITE_WITHIN_MS`, because MongoDB is slow or this process was paused.
 * Other processes no longer expect the batch's quotes.
 */
export class PausedTooLongError extends Error {}

/**
 * Opens each source or, with `toSum`, reserves it. Returns the threads whose sources were not
 * refused.
 * @param batch is written to the tokens. Absent if the round neither writes nor sums quotes.
 */
export async function openSources(
  { commands, runtime }: WriteDeps,
  rounds: readonly ThreadRound[],
  batch: WriterBatch | undefined,
  toSum: boolean,
): Promise<OpenThread[]> {
  const version = runtime.newId()
  const token = batch && {
    ...batch,
    since: new Date(runtime.now()),
    ...(toSum && { excludes: runtime.newId() }),
  }
  const writes: GuardedWrite[] = []
  const openings = rounds.map((round): OpenThread => {
    const { stored, plan } = round
    const tokens = tokensOf(round, toSum, token)
    const { tokens: _, ...meta } = plan.source.document.meta
    const document = {
      ...plan.source.document,
      ...totalsAfter(stored.source ?? plan.source.document, plan.quoteWrites),
      meta: { ...meta, version, ...(tokens.length > 0 && { tokens }) },
    }
    const { write, ...opening } =
      stored.source === undefined
        ? { isFinal: true, source: document, write: { document } }
        : planStored(round, stored.source, document, toSum)
    if (write !== undefined) writes.push(write)
    return { ...round, ...opening }
  })
  const refused = await writeGuarded(commands, 'sources', writes, version)
  return openings.filter(({ work }) => !refused.has(work.id))
}

type NewToken = Omit<WriterToken, 'request'> | undefined

/**
 * Returns the tokens to store: other requests' tokens and, if the round writes or sums quotes of
 * the thread, a new token for each of our requests.
 */
function tokensOf(
  { work, stored, plan }: ThreadRound,
  toSum: boolean,
  token: NewToken,
): WriterToken[] {
  const before = stored.source?.meta.tokens ?? []
  if (token === undefined || (plan.quoteWrites.length === 0 && !toSum)) return before
  const others = before.filter((one) => !isMine(work, one))
  return [...others, ...work.requests.map(({ id }) => ({ request: id, ...token }))]
}

export function totalsAfter(
  { wordCount, quoteCount }: QuoteTotals,
  writes: readonly QuoteDraft[],
): QuoteTotals {
  for (const { stored, document } of writes) {
    wordCount += document.wordCount - (stored?.wordCount ?? 0)
    if (stored === undefined) quoteCount += 1
  }
  return { wordCount, quoteCount }
}

/**
 * Writes the quotes of all opened threads together, and returns the threads whose quotes were all
 * written.
 * @param openedAt a moment before the threads were opened, by the monotonic clock.
 * @throws {PausedTooLongError}
 */
export async function writeQuotes(
  { commands, runtime }: WriteDeps,
  threads: readonly OpenThread[],
  openedAt: number,
  onSent = () => {},
): Promise<OpenThread[]> {
  const version = runtime.newId()
  const drafts = threads.flatMap(({ plan }) => plan.quoteWrites)
  for (const { document } of drafts) document.meta.version = version
  const writes = drafts.map((draft): GuardedWrite<QuoteDocument> => {
    const { stored, document, changed } = draft
    return stored === undefined || changed ? draft : planUpdate(stored, document)
  })
  const writing = writeGuarded(commands, 'quotes', writes, version, () => {
    if (runtime.monotonic() - openedAt > WRITE_WITHIN_MS)
      throw new PausedTooLongError(
        `the batch took more than ${WRITE_WITHIN_MS / 1000} s: MongoDB is slow, or this process was paused`,
      )
  })
  onSent()
  const refused = await writing
  return threads.filter(({ plan }) =>
    plan.quoteWrites.every(({ document }) => !refused.has(document._id)),
  )
}

/**
 * Sends all writes, inserts first, and returns the ids of the refused ones. Each write must set
 * `meta.version` to `version`, which no other write sets. Each command has its writes in the order
 * of their ids: on engines that lock documents, two commands that lock in the same order never
 * deadlock. `checkTime` throws if it is too late for another command.
 */
export async function writeGuarded(
  commands: StoreCommands,
  name: 'sources' | 'quotes',
  writes: readonly GuardedWrite[],
  version: ObjectId,
  checkTime: () => void = () => {},
): Promise<Set<string>> {
  const refused = new Set<string>()
  async function send(
    some: readonly GuardedWrite[],
    command: (some: readonly GuardedWrite[]) => Promise<string[]>,
  ) {
    const sendSome = async (fitting: readonly GuardedWrite[]) => {
      for (const id of await command(fitting)) refused.add(id)
    }
    const characters = some.reduce((sum, one) => sum + charactersOf(one), 0)
    if (some.length > commands.writesPerCommand || characters > CHARACTERS_PER_COMMAND)
      await sendInChunks(some, commands.writesPerCommand, charactersOf, sendSome)
    else if (some.length > 0) await sendSome(some)
  }
  const inOrder = writes.toSorted((one, other) => compareIds(one.document, other.document))
  const inserts = inOrder.filter(({ stored }) => stored === undefined)
  await send(inserts, async (some) => {
    checkTime()
    const documents = some.map(({ document }) => document)
    const { refused: positions } = await commands.insert(name, documents)
    return positions.map((at) => documents[at]?._id ?? '')
  })
  const updates = inOrder.filter(({ stored }) => stored !== undefined)
  await send(updates, (some) => sendUpdates(commands, name, some, version, checkTime))
  return refused
}

const charactersOf = ({ document, u = document }: GuardedWrite) => textLength(u)

type Opening = Pick<OpenThread, 'isFinal' | 'source'> & { write?: GuardedWrite<SourceOrTombstone> }

/**
 * Plans the opening of a stored source: reserves the source, updates it to be `after`, or leaves it
 * as it is.
 */
function planStored(
  round: ThreadRound,
  before: SourceOrTombstone,
  after: SourceOrTombstone,
  toSum: boolean,
): Opening {
  if (toSum || isCoverBesideQuotes(round, before)) {
    const { version, tokens = [] } = after.meta
    const write = planMarks(before, { version, tokens })
    return { isFinal: false, source: write.document, write }
  }
  if (needsNoWrite(round)) return { isFinal: true, source: before }
  return { isFinal: true, source: after, write: planUpdate(before, after) }
}

/**
 * Plans an update after which a stored document is `after`. If only stamps change, as in a repeat,
 * the update sets only the stamps: `sendUpdates` can then join the updates of many documents.
 */
function planUpdate<Stored extends SourceOrTombstone | QuoteDocument>(
  stored: Stored,
  after: Stored,
): GuardedWrite<Stored> {
  const { version, stamp, cover } = after.meta
  const restamped = planMarks(stored, {
    version,
    ...(stamp !== undefined && { stamp }),
    ...(cover !== undefined && { cover }),
  })
  return isDeepStrictEqual(restamped.document, after) ? restamped : { stored, document: after }
}

/**
 * Returns whether a new cover must wait for the quotes. If it were stored first, it would give a
 * later stamp to their old values.
 */
function isCoverBesideQuotes({ plan }: ThreadRound, stored: SourceOrTombstone): boolean {
  return plan.source.document.meta.cover !== stored.meta.cover && plan.quoteWrites.length > 0
}

/** Returns whether the stored thread is already as the requests would make it. */
export function needsNoWrite({ plan: { source, quoteWrites } }: ThreadRound): boolean {
  return quoteWrites.length === 0 && !source.advanced
}

/**
 * Plans an update of only these marks. The new version refuses writes by processes that read the
 * source earlier.
 */
export function planMarks<Stored extends SourceOrTombstone | QuoteWithoutText>(
  stored: Stored,
  marks: {
    version: ObjectId
    tokens?: WriterToken[]
    epoch?: ObjectId
    stamp?: number
    cover?: number
  },
): GuardedWrite<Stored> {
  const $set = Object.fromEntries(
    Object.entries(marks).map(([name, value]) => [`meta.${name}`, value]),
  )
  return { stored, document: { ...stored, meta: { ...stored.meta, ...marks } }, u: { $set } }
}

/**
 * Measured on the emulator SecantusDB: 25 joined updates take 0.55 times as long as 25 single ones,
 * 250 take 1.2 times as long.
 */
const IDS_PER_UPDATE = 25
/**
 * Bounds the commands into which one command is divided, because each waits for a majority. Groups
 * that would need more commands are not joined.
 */
const MAX_JOINED = 25

/**
 * Sends updates, which must be sorted by their ids. Returns the ids of the documents that do not
 * have the new version afterwards. Joins updates that set the same values, and sends them in a
 * separate command: their ids are between the other ids, and a command must lock its documents in
 * the order of their ids. `checkTime` throws if it is too late for another command.
 */
async function sendUpdates(
  commands: StoreCommands,
  name: 'sources' | 'quotes',
  writes: readonly GuardedWrite[],
  version: ObjectId,
  checkTime: () => void,
): Promise<string[]> {
  const updates = writes.map(({ stored, document, u = document }): UpdateStatement => {
    const { _id } = document
    // Quotes are sharded by their sources. With `sourceId`, only one shard gets and counts an
    // update, joined or not. Without it, a second shard might count copies that a migration left
    // behind.
    const shard = 'sourceId' in document && { sourceId: document.sourceId }
    return { q: { _id, ...shard, 'meta.version': stored?.meta.version }, u }
  })
  const alike = Map.groupBy(updates, ({ q: { _id, ...guard }, u }) =>
    u.$set ? JSON.stringify([guard, u]) : _id,
  )
  const joined = [...alike.values()].filter(
    ({ length }) => length > 1 && length * MAX_JOINED >= updates.length,
  )
  const ofMany = new Set(joined.flat())
  let n = 0
  for (const some of [updates.filter((one) => !ofMany.has(one)), ...joined.map(joinUpdates)]) {
    if (some.length === 0) continue
    checkTime()
    n += (await commands.update(name, some)).n
  }
  if (n === updates.length) return []
  const ids = writes.map(({ document }) => document._id)
  const versions = await commands.findVersions(name, ids)
  const written = new Set(
    versions.filter(({ meta }) => meta.version.equals(version)).map(({ _id }) => _id),
  )
  return ids.filter((id) => !written.has(id))
}

/**
 * Joins updates that set the same values in documents of the same version. This costs less: one
 * statement for each `IDS_PER_UPDATE` ids instead of one for each id.
 */
function joinUpdates(alike: readonly UpdateStatement[]): UpdateStatement[] {
  return Array.from(chunksOf(alike, IDS_PER_UPDATE)).flatMap((some) => {
    const _id = { $in: some.map(({ q }) => q._id) }
    return some.slice(0, 1).map(({ q, u }) => ({ q: { ...q, _id }, u, multi: true }))
  })
}
