// One round of a batch: plans the threads, opens their sources, writes the quotes, and commits reserved sources.
import type { ObjectId } from 'mongodb'
import type { OpenThread, QuoteDraft, SourceDocument, ThreadRound, WriterBatch } from '../documents.ts'
import { textDigestOf, UNCOUNTED } from '../merge/drafts.ts'
import { planThread } from '../merge/plan.ts'
import { countWordsAsync } from '../words/count-words.ts'
import type { Slices } from '../words/slices.ts'
import { needsNoWrite, openSources, writeQuotes } from './guarded-writes.ts'
import { REPLACED, type ReadThread } from './read-stored.ts'
import { noteRefused } from './refused-threads.ts'
import { commitReserved, type SumDeps, writeAndSum } from './sum-sources.ts'
import type { OpenedSource, Writer } from './writer.ts'

export interface RoundDeps extends SumDeps {
  writer: Writer
  slices: Slices
}

export interface RoundResult {
  stored: { round: ThreadRound; source: SourceDocument }[]
  /** The threads that need another round. */
  again: ThreadRound[]
  /** Undefined if no quote had to be written. */
  batch: WriterBatch | undefined
  /** The sources whose epochs are to be checked when the batch has ended. */
  opened: OpenedSource[]
}

/**
 * Plans and writes these threads.
 *
 * @param toSum whether all of them must be summed: decided once, because a token may become stale at any moment.
 * @param onLastWrite is called when the first command with quotes was sent or, if sources were reserved, the commit.
 * Never called for threads that are summed.
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
  // An answer without a write must not depend on a source that can be rolled back: such a thread is read again.
  const unconfirmed = planned.filter((round) => !toSum && needsNoWrite(round) && !round.work.readsMajority)
  for (const { work } of unconfirmed) work.readsMajority = true
  const rounds = planned.filter((round) => !unconfirmed.includes(round))
  const openedAt = runtime.monotonic()
  const batch = toSum || rounds.some(writesQuotes) ? await writer.begin() : undefined
  try {
    const open = await openSources(deps, rounds, batch, toSum)
    const write = toSum ? writeAndSum : writeOpened
    const written = await write(deps, open, openedAt, version, onLastWrite)
    const sources = new Map(written.map((source) => [source._id, source]))
    const refused = rounds.filter(({ work }) => !sources.has(work.id))
    for (const round of refused) noteRefused(round, open, toSum)
    const stored = rounds.flatMap((round) => {
      const source = sources.get(round.work.id)
      return source === undefined ? [] : [{ round, source }]
    })
    const opened = open
      .filter(({ round, isFinal }) => isFinal && writesQuotes(round) && sources.has(round.work.id))
      .map(({ source: { _id: id, meta } }) => ({ id, epoch: meta.epoch }))
    return { stored, again: [...refused, ...unconfirmed], batch, opened }
  } catch (error) {
    if (batch !== undefined) writer.abandon(batch)
    throw error
  }
}

/** Plans each thread, and completes the quotes to write. */
async function planRounds(ready: readonly ReadThread[], version: ObjectId, slices: Slices): Promise<ThreadRound[]> {
  const plans = ready.map((read) => ({ ...read, plan: planThread(read.stored, read.work.requests) }))
  const drafts = plans.flatMap(({ plan }) => plan.quoteWrites)
  const uncounted = drafts.flatMap(({ document }) => (document.wordCount === UNCOUNTED ? [document.text] : []))
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

/** Returns the sources that were not refused. */
async function writeOpened(
  deps: RoundDeps,
  open: readonly OpenThread[],
  openedAt: number,
  version: ObjectId,
  onLastWrite: () => void,
): Promise<SourceDocument[]> {
  const isAllFinal = open.every(({ isFinal }) => isFinal)
  const writing = writeQuotes(deps, open, openedAt, version)
  if (isAllFinal) onLastWrite()
  const written = await writing
  const final = written.flatMap(({ isFinal, source }) => (isFinal ? [source] : []))
  if (isAllFinal) return final
  const committing = commitReserved(
    deps,
    written.filter(({ isFinal }) => !isFinal),
  )
  onLastWrite()
  return [...final, ...(await committing)]
}
