// Stores batches of requests in rounds. A round plans the threads, opens their sources, writes the quotes and makes the answers. New threads need one.
import type { ObjectId } from 'mongodb'
import type {
  OpenThread,
  QuoteDraft,
  StoredAnswer,
  StoreRequest,
  ThreadRound,
  ThreadWork,
  WriterBatch,
} from '../documents.ts'
import { textDigestOf, UNCOUNTED } from '../merge/drafts.ts'
import { answersOf, groupByThread, planThread } from '../merge/plan.ts'
import type { Runtime, StoreCommands } from '../mongodb/commands.ts'
import { processRuntime } from '../mongodb/mongo-commands.ts'
import { asStoreAway } from '../mongodb/store-errors.ts'
import { countWordsAsync, createSlices, SLICE_MS, type Slices } from '../words/count-words.ts'
import { commitSources, noteRefused, storeKnown, withNewEpochs } from './known-threads.ts'
import { REPLACED, type ReadThread } from './read-stored.ts'
import { type OpenedSource, type RecountDeps, reconcile } from './recount.ts'
import { createWatermarks } from './tokens.ts'
import { needsNoWrite, openSources, writeQuotes } from './write-threads.ts'
import { createWriter, type Writer } from './writer.ts'

/** Stores batches for one process. */
export type BatchStore = ReturnType<typeof createBatchStore>

/** Creates a store for one process. It creates the indexes before the first batch. */
export function createBatchStore(commands: StoreCommands, runtime: Runtime = processRuntime) {
  const slices = createSlices(SLICE_MS, runtime.monotonic)
  const recountDeps = { commands, runtime, watermarks: createWatermarks(commands) }
  const deps = { ...recountDeps, writer: createWriter(recountDeps), slices }
  let isIndexed = false
  // Imports tend to be all new or all known, so assume that this batch resembles the last.
  let wereNew = false
  return {
    /**
     * Stores a batch of requests and resolves with their answers, by the request's id, when they are written with majority write concern. A request without an answer was not stored, because
     * another process sums its thread: store it again soon. The same requests may be stored again at any time and by any process.
     *
     * @param onLastWrite is called in each round when the first quote command, or the commit, was sent. Never called for threads that are summed.
     * @throws {StoreAwayError} if MongoDB can't be reached or can't commit: the outcome of the writes is not known, so try again.
     */
    async store(requests: readonly StoreRequest[], onLastWrite = () => {}): Promise<Map<string, StoredAnswer>> {
      try {
        if (!isIndexed) await commands.createIndexes()
        isIndexed = true
        const assumeNew = wereNew && !requests.some(({ redelivered }) => redelivered)
        const { answers, areNew } = await storeBatch(deps, requests, assumeNew, onLastWrite)
        wereNew = areNew
        return answers
      } catch (error) {
        throw asStoreAway(error)
      }
    },
    /**
     * Brings the sources of requests that failed for good into agreement with their quotes.
     *
     * @throws {StoreAwayError}
     */
    reconcile: (requests: readonly StoreRequest[]) => reconcile(recountDeps, requests),
    /** Resolves when the watermark covers every batch before the first that has not ended. Throws if MongoDB fails. */
    settle: deps.writer.settle,
  }
}

interface BatchDeps extends RecountDeps {
  writer: Writer
  slices: Slices
}

/** The results of a batch's rounds so far. */
interface Progress {
  answers: Map<string, StoredAnswer>
  /** The writer's batches that a refused thread keeps from ending, with the sources to remember when they end. */
  unfinished: { batch: WriterBatch; sources: OpenedSource[] }[]
}

/**
 * Stores a batch. `areNew`: no thread of it was stored before.
 *
 * @param assumeNew skips the read. If a thread is not new after all, its insert is refused and the next round reads it.
 */
async function storeBatch(
  deps: BatchDeps,
  requests: readonly StoreRequest[],
  assumeNew: boolean,
  onLastWrite: () => void,
): Promise<{ answers: Map<string, StoredAnswer>; areNew: boolean }> {
  const { writer } = deps
  const progress: Progress = { answers: new Map(), unfinished: [] }
  const store = (ready: readonly ReadThread[], toSum: boolean) =>
    storeRound(deps, ready, progress, toSum, toSum ? () => {} : onLastWrite)
  const works = groupByThread(requests)
  let areNew = true
  try {
    const asNew = (work: ThreadWork): ReadThread => ({ work, stored: { quotes: new Map() } })
    const left = assumeNew ? await store(works.map(asNew), false) : works
    if (left.length > 0) areNew = await storeKnown(deps, left, assumeNew, store)
  } catch (error) {
    for (const { batch } of progress.unfinished) writer.abandon(batch)
    throw error
  }
  for (const { batch, sources } of progress.unfinished) writer.end(batch, sources)
  return { answers: progress.answers, areNew }
}

/**
 * Runs one round for these threads. Adds the answers, and returns the threads that need another round.
 *
 * @param toSum whether all of these threads must be summed.
 */
async function storeRound(
  deps: BatchDeps,
  ready: readonly ReadThread[],
  { answers, unfinished }: Progress,
  toSum: boolean,
  onLastWrite: () => void,
): Promise<ThreadWork[]> {
  if (ready.length === 0) return []
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
    const opened = toSum ? await withNewEpochs(deps, open) : open
    const isAllFinal = opened.every(isFinal)
    const writing = writeQuotes(deps, opened, openedAt, version)
    if (isAllFinal) onLastWrite()
    const refusedQuotes = await writing
    const written = opened.filter(({ round }) => isWritten(round, refusedQuotes))
    const final = written.filter(isFinal)
    const stored = new Map(final.map(({ round, source }) => [round.work.id, source]))
    if (!isAllFinal) {
      const committing = commitSources(deps, written)
      onLastWrite()
      for (const [id, source] of await committing) stored.set(id, source)
    }
    const refused = rounds.filter(({ work }) => !stored.has(work.id))
    const isLeftOpen = refused.length > 0 && noteRefused(refused, open)
    if (batch !== undefined) {
      const sources = final
        .filter(({ round }) => writesQuotes(round))
        .map(({ source }) => ({ id: source._id, epoch: source.meta.epoch }))
      if (isLeftOpen) unfinished.push({ batch, sources })
      else writer.end(batch, sources)
    }
    for (const round of rounds) {
      const source = stored.get(round.work.id)
      if (source !== undefined) for (const [id, answer] of answersOf(round, source)) answers.set(id, answer)
    }
    return [...refused, ...unconfirmed].map(({ work }) => work)
  } catch (error) {
    if (batch !== undefined) writer.abandon(batch)
    throw error
  }
}

function isWritten({ quoteWrites }: ThreadRound, refused: ReadonlySet<string>): boolean {
  return refused.size === 0 || quoteWrites.every(({ document }) => !refused.has(document._id))
}

function isFinal({ kind }: OpenThread): boolean {
  return kind === 'final'
}

function writesQuotes({ quoteWrites }: ThreadRound): boolean {
  return quoteWrites.length > 0
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
