import type { ObjectId } from 'mongodb'
import type { QuoteTotals, StoreCommands } from './commands.ts'
import type { SourceDocument, WriterBatch, WriterToken } from './documents.ts'
import type { QuoteDraft } from './drafts.ts'
import { type GuardedWrite, writeGuarded } from './guarded-write.ts'
import type { Runtime } from './runtime.ts'
import type { ThreadRound } from './thread-work.ts'

// Writes the planned threads of one round: opens the sources, then writes the quotes.

/** A thread whose source is open, so that its quotes may be written. */
export interface OpenThread {
  round: ThreadRound
  /** The source as it is stored now. */
  source: SourceDocument
  /** The source already has the totals and fields that it will have when the quotes are written. */
  isFinal: boolean
}

/** A writer gives up where it can't write its quotes within so many ms of opening the source. `sluice doctor` relies on it: see `SETTLED_MS`. */
export const PATIENCE_MS = 30_000

/** A writer was paused for so long that others no longer expect its quotes. */
class PausedTooLongError extends Error {}

/**
 * Writes a token into each source that gets quotes, before its quotes. A source without open tokens is written with the totals and fields that it will have in the end,
 * so no other write is needed. Returns the threads whose guards let them through.
 *
 * @param batch is absent where no quote has to be written.
 */
export async function openSources(
  commands: StoreCommands,
  runtime: Runtime,
  rounds: readonly ThreadRound[],
  batch: WriterBatch | undefined,
): Promise<OpenThread[]> {
  const version = runtime.newId()
  const token = batch && { ...batch, since: new Date(runtime.now()) }
  const openings = rounds.map((round) => openingOf(round, version, token))
  const writes = openings.flatMap(({ write }) => write ?? [])
  const refused = await writeGuarded(commands, 'sources', writes, version)
  return openings.filter(({ round }) => !refused.has(round.work.id))
}

type Opening = OpenThread & { write?: GuardedWrite }
type NewToken = Omit<WriterToken, 'request'> | undefined

function openingOf(round: ThreadRound, version: ObjectId, token: NewToken): Opening {
  const { stored, plan, quoteWrites } = round
  if (isFinal(round)) {
    if (stored.source !== undefined && quoteWrites.length === 0 && !plan.source.advanced && !plan.source.changed)
      return { round, isFinal: true, source: stored.source }
    const source = finalSource(round, version, token)
    const read = stored.source?.meta.version
    const write = read === undefined ? { insert: source } : { id: source._id, read, replace: source }
    return { round, isFinal: true, source, write }
  }
  return reservedSource(round, version, token)
}

/** A new cover must not stand before the changed quotes are written: it would say of their old values that they were given later. */
function isFinal({ stored, plan, quoteWrites }: ThreadRound): boolean {
  if (stored.source === undefined) return true
  if (stored.source.meta.writers !== undefined) return false
  return quoteWrites.length === 0 || plan.source.document.meta.cover === stored.source.meta.cover
}

function finalSource(round: ThreadRound, version: ObjectId, token: NewToken): SourceDocument {
  const { stored, plan, quoteWrites } = round
  const { writers: _, ...planned } = plan.source.document.meta
  const writers = tokensOf(round, token)
  return {
    ...plan.source.document,
    ...movedTotals(stored.source ?? plan.source.document, quoteWrites),
    meta: { ...planned, version, ...(writers.length > 0 && { writers }) },
  }
}

/** The source as it was, under a version of this round. Whoever read it before must read it again. */
function reservedSource(round: ThreadRound, version: ObjectId, token: NewToken): Opening {
  const { source } = round.stored
  if (source === undefined) throw new Error(`source ${round.work.id} was not read`)
  const { digest: _, writers: __, ...before } = source.meta
  const writers = tokensOf(round, token)
  const tokens = writers.length === 0 ? {} : { writers }
  const $set = { 'meta.version': version, ...(writers.length > 0 && { 'meta.writers': writers }) }
  const $unset = { 'meta.digest': '', ...(writers.length === 0 && { 'meta.writers': '' }) }
  const write = { id: source._id, read: source.meta.version, update: { $set, $unset } }
  return { round, isFinal: false, source: { ...source, meta: { ...before, version, ...tokens } }, write }
}

/** The open tokens of others, and one for each of our requests where quotes are written. */
function tokensOf({ work, stored, quoteWrites }: ThreadRound, token: NewToken): WriterToken[] {
  const before = stored.source?.meta.writers ?? []
  if (token === undefined || quoteWrites.length === 0) return before
  const mine = new Set(work.requests.map(({ id }) => id))
  return [...before.filter(({ request }) => !mine.has(request)), ...[...mine].map((request) => ({ request, ...token }))]
}

/** The totals after these writes. */
export function movedTotals({ wordCount, quoteCount }: QuoteTotals, writes: readonly QuoteDraft[]): QuoteTotals {
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
  commands: StoreCommands,
  runtime: Runtime,
  threads: readonly OpenThread[],
  openedAt: number,
  version: ObjectId,
): Promise<Set<string>> {
  const writes = threads.flatMap(({ round }) =>
    round.quoteWrites.map(({ stored, document }): GuardedWrite =>
      stored === undefined
        ? { insert: document }
        : { id: document._id, read: stored.meta.version, replace: document },
    ),
  )
  return writeGuarded(commands, 'quotes', writes, version, () => {
    if (runtime.monotonic() - openedAt > PATIENCE_MS)
      throw new PausedTooLongError(`this process was paused for more than ${PATIENCE_MS / 1000} s amid a batch`)
  })
}
