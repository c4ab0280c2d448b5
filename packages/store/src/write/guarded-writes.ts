// Opens the sources of a round, and writes the quotes, under guard: a write takes effect only if no other process wrote
// the document since it was read.
import { textLength } from '@sluice/contract'
import type { ObjectId } from 'mongodb'
import { CHARACTERS_PER_COMMAND, sendInChunks } from '../chunks.ts'
import type {
  GuardedWrite,
  OpenThread,
  QuoteDocument,
  QuoteDraft,
  ThreadRound,
  WriterBatch,
  WriterToken,
} from '../documents.ts'
import { compareIds } from '../ids.ts'
import type { QuoteTotals, StoreCommands } from '../mongodb/commands.ts'
import type { Runtime } from '../mongodb/mongo-commands.ts'
import { planStored, planUpdate, sendUpdates } from './guarded-updates.ts'
import { isMine, WRITE_WITHIN_MS } from './tokens.ts'

export interface WriteDeps {
  commands: StoreCommands
  runtime: Runtime
}

/** A batch took more than `WRITE_WITHIN_MS`, as MongoDB is slow or this process was paused: other processes no longer expect its quotes. */
export class PausedTooLongError extends Error {}

/**
 * Opens each source or, with `toSum`, reserves it. `batch` goes into the tokens; it is absent if the round writes and
 * sums no quotes. Returns the threads whose sources were not refused.
 */
export async function openSources(
  { commands, runtime }: WriteDeps,
  rounds: readonly ThreadRound[],
  batch: WriterBatch | undefined,
  toSum: boolean,
): Promise<OpenThread[]> {
  const version = runtime.newId()
  const token = batch && { ...batch, since: new Date(runtime.now()), ...(toSum && { excludes: runtime.newId() }) }
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
 * Returns the tokens to store: those of other requests and, if the round writes or sums quotes of the thread, a new one
 * for each of our requests.
 */
function tokensOf({ work, stored, plan }: ThreadRound, toSum: boolean, token: NewToken): WriterToken[] {
  const before = stored.source?.meta.tokens ?? []
  if (token === undefined || (plan.quoteWrites.length === 0 && !toSum)) return before
  const others = before.filter((one) => !isMine(work, one))
  return [...others, ...work.requests.map(({ id }) => ({ request: id, ...token }))]
}

export function totalsAfter({ wordCount, quoteCount }: QuoteTotals, writes: readonly QuoteDraft[]): QuoteTotals {
  for (const { stored, document } of writes) {
    wordCount += document.wordCount - (stored?.wordCount ?? 0)
    if (stored === undefined) quoteCount += 1
  }
  return { wordCount, quoteCount }
}

/**
 * Writes the quotes of all opened threads together, and returns the threads whose quotes are all written. `openedAt` is
 * a moment before their opening, by the monotonic clock. @throws {PausedTooLongError}
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
  return threads.filter(({ plan }) => plan.quoteWrites.every(({ document }) => !refused.has(document._id)))
}

/**
 * Sends all writes, inserts first, and returns the ids of the refused ones. Each write must set `meta.version` to
 * `version`, which no other write sets. Each command has its writes in the order of their ids: on engines that lock
 * documents, two commands that lock in one order never deadlock. `checkTime` throws before a late command.
 */
export async function writeGuarded(
  commands: StoreCommands,
  name: 'sources' | 'quotes',
  writes: readonly GuardedWrite[],
  version: ObjectId,
  checkTime: () => void = () => {},
): Promise<Set<string>> {
  const refused = new Set<string>()
  async function send(some: readonly GuardedWrite[], command: (some: readonly GuardedWrite[]) => Promise<string[]>) {
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
