// One round of a batch: plans the threads, opens their sources, writes the quotes, and commits the sources that could not be opened in their final form.
import type { ObjectId } from 'mongodb'
import type { OpenThread, QuoteDraft, SourceDocument, ThreadRound, WriterBatch, WriterToken } from '../documents.ts'
import { textDigestOf, UNCOUNTED } from '../merge/drafts.ts'
import { planThread } from '../merge/plan.ts'
import type { GuardedWrite } from '../mongodb/commands.ts'
import { countWordsAsync, type Slices } from '../words/count-words.ts'
import { REPLACED, type ReadThread } from './read-stored.ts'
import { prepareSum, type RecountDeps, sumQuotes, whileReserved } from './recount.ts'
import { isMine, tokensAfterSum } from './tokens.ts'
import { needsNoWrite, openSources, totalsAfter, type WriteDeps, writeGuarded, writeQuotes } from './write-threads.ts'
import type { OpenedSource, Writer } from './writer.ts'

export interface RoundDeps extends RecountDeps {
  writer: Writer
  slices: Slices
}

/** The results of one round. */
export interface RoundResult {
  /** The stored threads, with their sources as they are stored. */
  stored: { round: ThreadRound; source: SourceDocument }[]
  /** The threads that need another round. */
  again: ThreadRound[]
  /** Absent if no quote had to be written. */
  batch?: WriterBatch
  /** The sources whose epochs are to be checked when the batch has ended. */
  opened: OpenedSource[]
}

/**
 * Plans and writes these threads.
 *
 * @param toSum whether all of these threads must be summed: decided once, because a token may become stale at any moment.
 * @param onLastWrite is called when the first quote command, or the commit, was sent. Never called for threads that are summed.
 */
export async function storeRound(
  deps: RoundDeps,
  ready: readonly ReadThread[],
  toSum: boolean,
  onLastWrite: () => void,
): Promise<RoundResult> {
  const { runtime, writer, slices } = deps
  const version = runtime.newId()
  const planned = await planRounds(ready, version, slices)
  // An answer without a write must not depend on documents that can be rolled back: such a thread is read again.
  const unconfirmed = planned.filter((round) => !toSum && needsNoWrite(round) && !round.work.readsMajority)
  for (const { work } of unconfirmed) work.readsMajority = true
  const rounds = planned.filter((round) => !unconfirmed.includes(round))
  const openedAt = runtime.monotonic()
  const batch = toSum || rounds.some(writesQuotes) ? await writer.begin() : undefined
  try {
    const open = await openSources(deps, rounds, batch, toSum)
    const write = toSum ? writeSummed : writeOpened
    const sources = await write(deps, open, openedAt, version, onLastWrite)
    const refused = rounds.filter(({ work }) => !sources.has(work.id))
    for (const round of refused) noteRefused(round, open, toSum)
    const stored = rounds.flatMap((round) => {
      const source = sources.get(round.work.id)
      return source === undefined ? [] : [{ round, source }]
    })
    const again = [...refused, ...unconfirmed]
    if (batch === undefined) return { stored, again, opened: [] }
    const opened = open.filter(
      ({ round, kind }) => kind === 'final' && writesQuotes(round) && sources.has(round.work.id),
    )
    return {
      stored,
      again,
      batch,
      opened: opened.map(({ source: { _id: id, meta } }) => ({ ...batch, id, epoch: meta.epoch })),
    }
  } catch (error) {
    if (batch !== undefined) writer.abandon(batch)
    throw error
  }
}

/** Plans each thread. Counts the words of new texts, and completes the quotes to write by word count, digest and version. */
async function planRounds(ready: readonly ReadThread[], version: ObjectId, slices: Slices): Promise<ThreadRound[]> {
  const plans = ready.map((read) => ({ ...read, plan: planThread(read.stored, read.work.requests) }))
  const uncounted = plans.flatMap(({ plan }) =>
    plan.quoteWrites.filter(({ document }) => document.wordCount === UNCOUNTED).map(({ document }) => document.text),
  )
  const counts = await countWordsAsync(uncounted, slices)
  let counted = 0
  const complete = (draft: QuoteDraft): QuoteDraft => {
    const { document } = draft
    if (document.text === REPLACED) throw new Error(`the text of quote ${document._id} was not read`)
    if (document.wordCount !== UNCOUNTED)
      return { ...draft, document: { ...document, meta: { ...document.meta, version } } }
    const meta = { ...document.meta, version, textDigest: textDigestOf(document.text) }
    return { ...draft, document: { ...document, wordCount: counts[counted++] ?? 0, meta } }
  }
  return plans.map((planned) => ({ ...planned, quoteWrites: planned.plan.quoteWrites.map(complete) }))
}

function writesQuotes({ quoteWrites }: ThreadRound): boolean {
  return quoteWrites.length > 0
}

/** Writes the quotes of opened sources, and commits the sources that get a new cover. Returns the stored sources by id, without the refused ones. */
async function writeOpened(
  deps: RoundDeps,
  open: readonly OpenThread[],
  openedAt: number,
  version: ObjectId,
  onLastWrite: () => void,
): Promise<Map<string, SourceDocument>> {
  const isAllFinal = open.every(({ kind }) => kind === 'final')
  const writing = writeQuotes(deps, open, openedAt, version)
  if (isAllFinal) onLastWrite()
  const refusedQuotes = await writing
  const written = open.filter(({ round }) => isWritten(round, refusedQuotes))
  const committing = commitSources(
    deps,
    written.filter(({ kind }) => kind !== 'final'),
  )
  if (!isAllFinal) onLastWrite()
  const committed = await committing
  for (const { kind, source } of written) if (kind === 'final') committed.set(source._id, source)
  return committed
}

/** Waits for other writers, writes the quotes, sums, and commits. Returns the stored sources by id, without the refused ones. */
async function writeSummed(
  deps: RoundDeps,
  open: readonly OpenThread[],
  openedAt: number,
  version: ObjectId,
): Promise<Map<string, SourceDocument>> {
  const isOwn = (token: WriterToken) => open.some(({ round }) => isMine(round.work, token))
  const reserved = { sources: open.map(({ source }) => source) }
  return whileReserved(deps, reserved, isOwn, async () => {
    reserved.sources = await prepareSum(deps, reserved.sources, isOwn)
    const sources = new Map(reserved.sources.map((source) => [source._id, source]))
    const begun = open.flatMap((thread) => {
      const source = sources.get(thread.round.work.id)
      return source === undefined ? [] : [{ ...thread, source }]
    })
    const refusedQuotes = await writeQuotes(deps, begun, openedAt, version)
    return commitSources(
      deps,
      begun.filter(({ round }) => isWritten(round, refusedQuotes)),
    )
  })
}

function isWritten({ quoteWrites }: ThreadRound, refused: ReadonlySet<string>): boolean {
  return refused.size === 0 || quoteWrites.every(({ document }) => !refused.has(document._id))
}

/**
 * Writes the planned fields and the totals of reserved sources, and removes the tokens of these requests. Returns the sources by id, without the refused ones.
 *
 * @param written the threads whose quotes are all written. `prepareSum` was called for those to sum.
 */
async function commitSources(
  { commands, runtime }: WriteDeps,
  written: readonly OpenThread[],
): Promise<Map<string, SourceDocument>> {
  if (written.length === 0) return new Map()
  const toSum = written.filter(({ kind }) => kind === 'sum').map(({ round }) => round.work.id)
  const sums = await sumQuotes(commands, toSum)
  const version = runtime.newId()
  const sources = written.map(({ round, source: reserved }): SourceDocument => {
    const { work, plan, quoteWrites } = round
    const { epoch, tokens: before = [] } = reserved.meta
    const tokens = tokensAfterSum(runtime, before, (token) => isMine(work, token))
    const { tokens: _, ...meta } = plan.source.document.meta
    return {
      ...plan.source.document,
      ...(sums.get(work.id) ?? totalsAfter(reserved, quoteWrites)),
      meta: { ...meta, version, ...(epoch && { epoch }), ...(tokens.length > 0 && { tokens }) },
    }
  })
  const writes = sources.map((source, at): GuardedWrite => {
    return { id: source._id, read: written[at]?.source.meta.version ?? version, replace: source }
  })
  const refused = await writeGuarded(commands, 'sources', writes, version)
  return new Map(sources.filter(({ _id }) => !refused.has(_id)).map((source) => [source._id, source]))
}

/** Prepares a refused thread for another round. */
function noteRefused(round: ThreadRound, open: readonly OpenThread[], toSum: boolean): void {
  const { work, stored } = round
  const isOpened = open.some((thread) => thread.round === round)
  // If a refused insert took effect after all, the document names its request.
  if (!isOpened && stored.source === undefined) return
  // A refused update may have taken effect and been overwritten since, so the outcomes are those of a later delivery.
  work.requests = work.requests.map((request) => ({ ...request, redelivered: true }))
  // The next read shows whether a refused opening left a token.
  work.mayHaveChanged ||= isOpened || !(toSum || writesQuotes(round))
}
