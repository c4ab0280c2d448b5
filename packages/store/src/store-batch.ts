// Stores batches of requests: reads, plans, opens the sources, writes the quotes, and repeats the round for threads that a guard refused.
import type { ObjectId } from 'mongodb'
import type { Runtime, StoreCommands } from './commands.ts'
import { commitSources } from './commit-sources.ts'
import type { SourceDocument, WriterBatch, WriterToken } from './documents.ts'
import { REPLACED, textDigestOf, UNCOUNTED } from './drafts.ts'
import { asStoreAway } from './errors.ts'
import { sourceIdOf } from './ids.ts'
import { processRuntime } from './mongodb.ts'
import { answersOf, groupByThread, planThread, recordOutcomes } from './plan.ts'
import { type ReadThread, readThreads } from './read-threads.ts'
import { prepareSum, type RecountDeps, recount } from './recount.ts'
import type { OpenThread, QuoteDraft, StoredAnswer, StoreRequest, ThreadRound, ThreadWork } from './thread.ts'
import { createWatermarks, isMine, needsSum } from './tokens.ts'
import { countWordsAsync, createSlices, SLICE_MS, type Slices } from './words/count-words.ts'
import { openSources, writeQuotes } from './write-threads.ts'
import { createWriter, type OpenedSource, type Writer } from './writer.ts'

/** Of two workers that write one thread, each succeeds at times. So many rounds with a refusal mean a fault. */
const MAX_REFUSED_ROUNDS = 100
/** The back-off before another round doubles up to this, in ms, and is random below it. */
const MAX_BACK_OFF_MS = 100

/** Stores batches for one process. */
export interface BatchStore {
  /**
   * Stores a batch of requests and resolves with their answers, by the request's id, when they are written with majority write concern. A request without an answer was not stored, because
   * another process sums its thread: store it again soon. The same requests may be stored again at any time and by any process.
   *
   * @param onLastWrite is called in each round when the first quote command, or the commit, was sent. Never called for threads that are summed.
   * @throws {StoreAwayError} if MongoDB can't be reached or can't commit: the outcome of the writes is not known, so try again.
   */
  store(requests: readonly StoreRequest[], onLastWrite?: () => void): Promise<Map<string, StoredAnswer>>
  /**
   * Brings the sources of requests that failed for good into agreement with their quotes.
   *
   * @throws {StoreAwayError}
   */
  reconcile(requests: readonly StoreRequest[]): Promise<void>
  /** Resolves when the watermark covers every batch before the first that has not ended. Throws if MongoDB fails. */
  settle(): Promise<void>
}

interface BatchDeps extends RecountDeps {
  writer: Writer
  slices: Slices
}

/** Creates a store for one process. It creates the indexes before the first batch. */
export function createBatchStore(commands: StoreCommands, runtime: Runtime = processRuntime): BatchStore {
  const slices = createSlices(SLICE_MS, runtime.monotonic)
  const recountDeps = { commands, runtime, watermarks: createWatermarks(commands) }
  const deps = { ...recountDeps, writer: createWriter(recountDeps), slices }
  let isIndexed = false
  // Imports tend to be all new or all known, so assume that this batch resembles the last.
  let wereNew = false
  return {
    async store(requests, onLastWrite = () => {}) {
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
    async reconcile(requests) {
      const ids = new Set(requests.map(({ tenant, thread }) => sourceIdOf(tenant, thread.source)))
      // A late command of the failed request may still take effect: its tokens stay.
      const isRemovable = () => false
      await recount(deps, [...ids], isRemovable).catch((error) => Promise.reject(asStoreAway(error)))
    },
    settle: deps.writer.settle,
  }
}

interface StoredBatch {
  answers: Map<string, StoredAnswer>
  /** No thread of it was stored before. */
  areNew: boolean
}

/** @param assumeNew skips the read. If a thread is not new after all, its insert is refused and the next round reads it. */
async function storeBatch(
  deps: BatchDeps,
  requests: readonly StoreRequest[],
  assumeNew: boolean,
  onLastWrite: () => void,
): Promise<StoredBatch> {
  const { runtime, writer } = deps
  const progress: Progress = { answers: new Map(), unfinished: [] }
  let pending = groupByThread(requests)
  let areNew = true
  let refusedRounds = 0
  try {
    for (let round = 0; pending.length > 0; round++) {
      if (round > 1) await runtime.delay(runtime.random() * Math.min(2 ** round, MAX_BACK_OFF_MS))
      const ready = round === 0 && assumeNew ? pending.map(asNew) : await readThreads(deps, pending)
      areNew &&= ready.length === pending.length && ready.every(({ stored }) => stored.source === undefined)
      const isToSum = ({ work, stored }: ReadThread) =>
        stored.source !== undefined && needsSum(runtime, work, stored.source)
      const [summed, others] = [ready.filter(isToSum), ready.filter((read) => !isToSum(read))]
      const excludedButOpened = pending.filter((work) => work.mayHaveToken && !ready.some((read) => read.work === work))
      const refused = await storeRound(deps, others, progress, false, onLastWrite)
      // After the others and in a batch of their own: a process that sums waits for writers, so no process may wait for it.
      refused.push(...(await storeRound(deps, summed, progress, true)))
      if (refused.length > 0) refusedRounds += 1
      if (refusedRounds === MAX_REFUSED_ROUNDS)
        throw new Error(`other processes won ${refused.length} threads ${refusedRounds} times in a row`)
      pending = [...refused, ...excludedButOpened]
    }
  } catch (error) {
    for (const { batch } of progress.unfinished) writer.abandon(batch)
    throw error
  }
  for (const { batch, sources } of progress.unfinished) writer.end(batch, sources)
  return { answers: progress.answers, areNew }
}

function asNew(work: ThreadWork): ReadThread {
  return { work, stored: { quotes: new Map() } }
}

/** The batch of a round, which a refused thread keeps from ending, with the sources to remember when it ends. */
interface OpenBatch {
  batch: WriterBatch
  sources: OpenedSource[]
}

/** The results of a batch's rounds so far. */
interface Progress {
  answers: Map<string, StoredAnswer>
  unfinished: OpenBatch[]
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
  onLastWrite = () => {},
): Promise<ThreadWork[]> {
  if (ready.length === 0) return []
  const { runtime, writer, slices } = deps
  const version = runtime.newId()
  const rounds = await planRounds(ready, version, slices)
  const openedAt = runtime.monotonic()
  const batch = toSum || rounds.some(({ quoteWrites }) => quoteWrites.length > 0) ? await writer.begin() : undefined
  try {
    const open = await openSources(deps, rounds, batch, toSum)
    const opened = toSum ? await withNewEpochs(deps, open) : open
    const isAllFinal = opened.every(isFinal)
    const writing = writeQuotes(deps, opened, openedAt, version)
    if (isAllFinal) onLastWrite()
    const refusedQuotes = await writing
    const written = opened.filter(({ round }) => isWritten(round, refusedQuotes))
    const stored = new Map(written.filter(isFinal).map(({ round, source }) => [round.work.id, source]))
    if (!isAllFinal) {
      const committing = commitSources(
        deps,
        written.filter((thread) => !isFinal(thread)),
      )
      onLastWrite()
      for (const [id, source] of await committing) stored.set(id, source)
    }
    // A refused update may have taken effect and been overwritten since: then our token is still in the source.
    const isLeftOpen = ({ work, stored: read }: ThreadRound) =>
      !stored.has(work.id) && (read.source !== undefined || open.some(({ round }) => round.work === work))
    for (const round of rounds) round.work.mayHaveToken ||= isLeftOpen(round)
    if (batch !== undefined) endBatch(deps, batch, written, rounds.some(isLeftOpen), unfinished)
    for (const { round } of opened) recordOutcomes(round, refusedQuotes, stored.has(round.work.id))
    return answerRound(rounds, stored, answers)
  } catch (error) {
    if (batch !== undefined) writer.abandon(batch)
    throw error
  }
}

/** Ends the batch of a round, or adds it to the unfinished ones if a token of a refused thread may be left open. */
function endBatch(
  { writer }: BatchDeps,
  batch: WriterBatch,
  written: readonly OpenThread[],
  isLeftOpen: boolean,
  unfinished: OpenBatch[],
): void {
  const sources = written
    .filter(isFinal)
    .filter(writesQuotes)
    .map(({ source }) => ({ id: source._id, epoch: source.meta.epoch }))
  if (isLeftOpen) unfinished.push({ batch, sources })
  else writer.end(batch, sources)
}

/** Sets a new epoch in the sources of these threads, so that their sums may begin. Omits the refused ones. */
async function withNewEpochs(deps: BatchDeps, open: readonly OpenThread[]): Promise<OpenThread[]> {
  const isOwn = (token: WriterToken) => open.some(({ round }) => isMine(round.work, token))
  const begun = await prepareSum(
    deps,
    open.map(({ source }) => source),
    isOwn,
  )
  const sources = new Map(begun.map((source) => [source._id, source]))
  return open.flatMap((thread) => {
    const source = sources.get(thread.round.work.id)
    return source === undefined ? [] : { ...thread, source }
  })
}

function isWritten({ quoteWrites }: ThreadRound, refused: ReadonlySet<string>): boolean {
  return refused.size === 0 || quoteWrites.every(({ document }) => !refused.has(document._id))
}

function isFinal({ kind }: OpenThread): boolean {
  return kind === 'final'
}

function writesQuotes({ round }: OpenThread): boolean {
  return round.quoteWrites.length > 0
}

/** Plans each thread. Counts the words of new texts, and completes the quotes to write by word count, digest and version. */
async function planRounds(ready: readonly ReadThread[], version: ObjectId, slices: Slices): Promise<ThreadRound[]> {
  const plans = ready.map((read) => ({ ...read, plan: planThread(read.stored, read.work.requests) }))
  const uncounted = plans.flatMap(({ plan }) =>
    plan.quoteWrites.filter(({ document }) => document.wordCount === UNCOUNTED).map(({ document }) => document.text),
  )
  const counts = await countWordsAsync(uncounted, { slices })
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

/** Adds the answers of the stored threads, and returns the others. */
function answerRound(
  rounds: readonly ThreadRound[],
  stored: ReadonlyMap<string, SourceDocument>,
  answers: Map<string, StoredAnswer>,
): ThreadWork[] {
  const again: ThreadWork[] = []
  for (const round of rounds) {
    const source = stored.get(round.work.id)
    if (source === undefined) again.push(round.work)
    else for (const [id, answer] of answersOf(round, source)) answers.set(id, answer)
  }
  return again
}
