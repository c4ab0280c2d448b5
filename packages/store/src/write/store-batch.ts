// Stores batches of requests, each in one round: read, plan, open, write, commit. Threads that another process wrote
// meanwhile go further rounds.
import type { ObjectId } from 'mongodb'
import type { QuoteDraft, StoredAnswer, StoreRequest, ThreadRound } from '../documents.ts'
import { textDigestOf, UNCOUNTED } from '../merge/drafts.ts'
import { answersOf, groupByThread, planThread } from '../merge/plan.ts'
import type { Runtime, StoreCommands } from '../mongodb/commands.ts'
import { processRuntime } from '../mongodb/mongo-commands.ts'
import { asStoreAway } from '../mongodb/store-errors.ts'
import { countWordsAsync } from '../words/count-words.ts'
import { createSlices, SLICE_MS, type Slices } from '../words/slices.ts'
import { noteRefused, type RoundResult, type StoreRound, storeFurther } from './further-rounds.ts'
import { needsNoWrite } from './guarded-updates.ts'
import { openSources, writeQuotes } from './guarded-writes.ts'
import { REPLACED, type ReadThread, readThreads } from './read-stored.ts'
import { recountRequests, type SumDeps, writeAndCommit, writeAndSum } from './sum-sources.ts'
import { createIsExcluded, createWatermarks, needsSum } from './tokens.ts'
import { createWriter, type Writer } from './writer.ts'

/** Stores batches for one process. */
export type BatchStore = ReturnType<typeof createBatchStore>

/** Creates a store for one process. It creates the indexes before the first batch. */
export function createBatchStore(commands: StoreCommands, runtime: Runtime = processRuntime) {
  const slices = createSlices(SLICE_MS, runtime.monotonic)
  const watermarks = createWatermarks(commands)
  const sumDeps = { commands, runtime, watermarks, isExcluded: createIsExcluded(runtime) }
  const deps = { ...sumDeps, writer: createWriter(sumDeps), slices }
  let isIndexed = false
  // Imports tend to be all new or all known: assume that this batch resembles the last.
  let wereNew = false
  return {
    /**
     * Stores a batch, and returns the answers by request id when all is written with majority. A request gets no
     * answer while another process sums its thread: store the request again soon. Storing a request again is safe, in
     * any process and at any time.
     *
     * @param onLastWrite is called in each round when its last kind of write was sent: the first command with quotes
     *   or, if sources were reserved, the commit. Never called for threads that are summed.
     * @throws {StoreAwayError} if the outcome of the writes is not known: try again.
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
    recountRequests: (requests: readonly StoreRequest[]) => recountRequests(sumDeps, requests),
    /** Resolves when the watermark covers all batches before the first that has not ended. Throws if MongoDB fails. */
    settle: deps.writer.settle,
  }
}

interface RoundDeps extends SumDeps {
  writer: Writer
  slices: Slices
}

/**
 * Stores a batch: in one round, unless another process writes its threads, too. `areNew`: no thread was stored before.
 *
 * @param assumeNew skips the first read. If a thread is not new after all, its insert is refused and the next round
 * reads it.
 */
async function storeBatch(
  deps: RoundDeps,
  requests: readonly StoreRequest[],
  assumeNew: boolean,
  onLastWrite: () => void,
): Promise<{ answers: Map<string, StoredAnswer>; areNew: boolean }> {
  const { runtime, writer } = deps
  const answers = new Map<string, StoredAnswer>()
  const works = groupByThread(requests)
  const read = assumeNew
    ? works.map((work): ReadThread => ({ work, stored: { quotes: new Map() }, isExcluded: false }))
    : await readThreads(deps, works)
  const ready = read.filter(({ isExcluded }) => !isExcluded)
  const areNew = ready.length === read.length && ready.every(({ stored }) => stored.source === undefined)
  const toSum = ready.filter(({ work, stored: { source } }) => source !== undefined && needsSum(runtime, work, source))
  const others = ready.filter((thread) => !toSum.includes(thread))
  const storeSome: StoreRound = (some, toSum) => storeRound(deps, some, toSum, answers, onLastWrite)
  const first = await storeSome(others, false)
  if (first.again.length > 0 || toSum.length > 0) {
    const wereNew = await storeFurther(deps, storeSome, first, toSum)
    return { answers, areNew: areNew && wereNew }
  }
  if (first.begun !== undefined) writer.end(first.begun.batch, first.begun.opened)
  return { answers, areNew }
}

/**
 * Plans and writes these threads, and adds the answers of those that were not refused.
 *
 * @param toSum whether all of them must be summed: decided once, because a token may become stale at any moment.
 * @param onLastWrite see `store`.
 */
async function storeRound(
  deps: RoundDeps,
  ready: readonly ReadThread[],
  toSum: boolean,
  answers: Map<string, StoredAnswer>,
  onLastWrite: () => void,
): Promise<RoundResult> {
  if (ready.length === 0) return { again: [] }
  const { runtime, writer, slices } = deps
  const version = runtime.newId()
  const planned = await planRounds(ready, version, slices)
  // An answer without a write must not depend on a source that can be rolled back: such a thread is read again.
  const unconfirmed = planned.filter(
    (round) => round.stored.source !== undefined && !toSum && !round.work.readsMajority && needsNoWrite(round),
  )
  for (const { work } of unconfirmed) work.readsMajority = true
  const rounds = planned.filter((round) => !unconfirmed.includes(round))
  const openedAt = runtime.monotonic()
  const batch = toSum || rounds.some(writesQuotes) ? await writer.begin() : undefined
  try {
    const open = await openSources(deps, rounds, batch, toSum)
    const write = toSum ? writeAndSum : open.every(({ isFinal }) => isFinal) ? writeQuotes : writeAndCommit
    const stored = await write(deps, open, openedAt, version, onLastWrite)
    for (const { round, source } of stored) for (const [id, answer] of answersOf(round, source)) answers.set(id, answer)
    const ids = new Set(stored.map(({ source }) => source._id))
    const refused = rounds.filter(({ work }) => !ids.has(work.id))
    for (const round of refused) noteRefused(round, open, toSum)
    const opened = stored
      .filter(({ round, isFinal }) => isFinal && writesQuotes(round))
      .map(({ source: { _id: id, meta } }) => ({ id, epoch: meta.epoch }))
    const again = [...refused, ...unconfirmed].map(({ work }) => work)
    return { again, begun: batch && { batch, opened } }
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
