// Opens the sources of one round, and writes the quotes.
import type { ObjectId } from 'mongodb'
import type { OpenThread, QuoteDraft, SourceDocument, ThreadRound, WriterBatch, WriterToken } from '../documents.ts'
import type { GuardedWrite, QuoteTotals, Runtime, StoreCommands } from '../mongodb/commands.ts'
import { writeGuarded } from '../mongodb/guarded-writes.ts'
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
  const write =
    before === undefined ? { insert: source } : { id: source._id, read: before.meta.version, replace: source }
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
  return { source, write: { id: stored._id, read: stored.meta.version, update } }
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
    round.quoteWrites.map(
      ({ stored, document }): GuardedWrite =>
        stored === undefined
          ? { insert: document }
          : { id: document._id, read: stored.meta.version, replace: document },
    ),
  )
  const refused = await writeGuarded(commands, 'quotes', writes, version, () => {
    if (runtime.monotonic() - openedAt > WRITE_WITHIN_MS)
      throw new PausedTooLongError(`this process was paused for more than ${WRITE_WITHIN_MS / 1000} s amid a batch`)
  })
  return threads.filter(({ round }) => round.quoteWrites.every(({ document }) => !refused.has(document._id)))
}
