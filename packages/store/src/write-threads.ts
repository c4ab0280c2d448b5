// Writes the planned threads of one round: opens the sources, then writes the quotes.
import type { ObjectId } from 'mongodb'
import type { QuoteTotals } from './commands.ts'
import type { SourceDocument, WriterBatch, WriterToken } from './documents.ts'
import { type GuardedWrite, writeGuarded } from './guarded-writes.ts'
import type { RecountDeps } from './recount.ts'
import type { OpenThread, QuoteDraft, ThreadRound } from './thread.ts'
import { isMine, WRITE_WITHIN_MS } from './tokens.ts'

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
  { commands, runtime }: Pick<RecountDeps, 'commands' | 'runtime'>,
  rounds: readonly ThreadRound[],
  batch: WriterBatch | undefined,
  toSum: boolean,
): Promise<OpenThread[]> {
  const version = runtime.newId()
  const token = batch && { ...batch, since: new Date(runtime.now()) }
  const openings = rounds.map((round) => planOpening(round, toSum ? 'sum' : kindOf(round), version, token))
  const writes = openings.flatMap(({ write }) => write ?? [])
  const refused = await writeGuarded(commands, 'sources', writes, version)
  return openings.filter(({ round }) => !refused.has(round.work.id))
}

type Opening = OpenThread & { write?: GuardedWrite }
type NewToken = Omit<WriterToken, 'request'> | undefined

function kindOf({ stored, plan, quoteWrites }: ThreadRound): OpenThread['kind'] {
  if (stored.source === undefined) return 'final'
  // A new cover must not be stored before the changed quotes: their old values would get a later stamp than theirs.
  const isNewCover = plan.source.document.meta.cover !== stored.source.meta.cover
  return isNewCover && quoteWrites.length > 0 ? 'cover' : 'final'
}

function planOpening(round: ThreadRound, kind: OpenThread['kind'], version: ObjectId, token: NewToken): Opening {
  const { stored, plan, quoteWrites } = round
  const tokens = tokensOf(round, kind, token)
  if (kind !== 'final') return planReservation(round, kind, version, tokens)
  if (stored.source !== undefined && quoteWrites.length === 0 && !plan.source.advanced && !plan.source.changed)
    return { round, kind, source: stored.source }
  const { tokens: _, ...planned } = plan.source.document.meta
  const source: SourceDocument = {
    ...plan.source.document,
    ...totalsAfter(stored.source ?? plan.source.document, quoteWrites),
    meta: { ...planned, version, ...(tokens.length > 0 && { tokens }) },
  }
  const read = stored.source?.meta.version
  return {
    round,
    kind,
    source,
    write: read === undefined ? { insert: source } : { id: source._id, read, replace: source },
  }
}

/** Writes the source as it was, with new tokens: this refuses the writes of processes that read it before. */
function planReservation(
  round: ThreadRound,
  kind: OpenThread['kind'],
  version: ObjectId,
  tokens: WriterToken[],
): Opening {
  const { source } = round.stored
  if (source === undefined) throw new Error(`source ${round.work.id} was not read`)
  const { digest: _, ...meta } = source.meta
  const update = { $set: { 'meta.version': version, 'meta.tokens': tokens }, $unset: { 'meta.digest': '' } }
  const write = { id: source._id, read: source.meta.version, update }
  return { round, kind, source: { ...source, meta: { ...meta, version, tokens } }, write }
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
  const excludes = kind === 'sum' && { excludes: true as const }
  return [...others, ...work.requests.map(({ id }) => ({ request: id, ...token, ...excludes }))]
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
  { commands, runtime }: Pick<RecountDeps, 'commands' | 'runtime'>,
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
