// Stores batches of requests, in rounds: read, plan, open, write, commit, and again for threads that another process
// wrote meanwhile.
import type { ObjectId } from 'mongodb'
import type { QuoteDraft, StoredAnswer, StoreRequest, ThreadRound, ThreadWork } from '../documents.ts'
import { textDigestOf, UNCOUNTED } from '../merge/drafts.ts'
import { answersOf, groupByThread, planThread } from '../merge/plan.ts'
import type { Runtime, StoreCommands } from '../mongodb/commands.ts'
import { processRuntime } from '../mongodb/mongo-commands.ts'
import { asStoreAway } from '../mongodb/store-errors.ts'
import { countWordsAsync } from '../words/count-words.ts'
import { createSlices, SLICE_MS, type Slices } from '../words/slices.ts'
import { needsNoWrite } from './guarded-updates.ts'
import { openSources, writeQuotes } from './guarded-writes.ts'
import { REPLACED, type ReadThread, readThreads } from './read-stored.ts'
import { dropUnopened, noteRefused, type UnendedBatch } from './refused-threads.ts'
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

/** Workers that write one thread refuse each other's writes at times. More rounds with a refusal mean a fault. */
const MAX_REFUSED_ROUNDS = 100
/** The pause before another round is random. Its bound doubles each round, up to this. */
const MAX_BACK_OFF_MS = 100

/**
 * Stores a batch, round after round. `areNew`: no thread was stored before.
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
  let unended: UnendedBatch[] = []
  let pending = groupByThread(requests)
  let areNew = true
  let refusedRounds = 0
  const isToSum = ({ work, stored: { source } }: ReadThread) => source !== undefined && needsSum(runtime, work, source)
  async function write(ready: readonly ReadThread[], toSum: boolean): Promise<ThreadWork[]> {
    if (ready.length === 0) return []
    const { batch, opened, stored, again } = await storeRound(deps, ready, toSum, onLastWrite)
    for (const { round, source } of stored) {
      for (const { refused } of unended) refused.delete(round.work.id)
      for (const [id, answer] of answersOf(round, source)) answers.set(id, answer)
    }
    if (batch !== undefined) unended.push({ batch, opened, refused: new Set(again.map(({ work }) => work.id)) })
    endFinished()
    return again.map(({ work }) => work)
  }
  function endFinished(): void {
    for (const { batch, opened, refused } of unended) if (refused.size === 0) writer.end(batch, opened)
    unended = unended.filter(({ refused }) => refused.size > 0)
  }
  try {
    for (let round = 0; pending.length > 0; round++) {
      if (round > 1) await runtime.delay(runtime.random() * Math.min(2 ** round, MAX_BACK_OFF_MS))
      const isUnread = round === 0 && assumeNew
      const read = isUnread
        ? pending.map((work): ReadThread => ({ work, stored: { quotes: new Map() }, isExcluded: false }))
        : await readThreads(deps, pending)
      if (unended.length > 0) {
        await dropUnopened(deps, unended, read)
        endFinished()
      }
      const ready = read.filter(({ isExcluded }) => !isExcluded)
      areNew &&= isUnread || (ready.length === read.length && ready.every(({ stored }) => stored.source === undefined))
      const toSum = ready.filter(isToSum)
      const again = await write(
        ready.filter((thread) => !toSum.includes(thread)),
        false,
      )
      // After the others, under a batch number of their own: a sum waits for writers, so no writer may wait for a sum.
      again.push(...(await write(toSum, true)))
      if (again.length > 0) refusedRounds += 1
      if (refusedRounds === MAX_REFUSED_ROUNDS)
        throw new Error(`other processes won ${again.length} threads ${refusedRounds} times in a row`)
      const excluded = read.filter(({ isExcluded, work }) => isExcluded && work.mayHaveChanged)
      pending = [...again, ...excluded.map(({ work }) => work)]
    }
  } catch (error) {
    for (const { batch } of unended) writer.abandon(batch)
    throw error
  }
  return { answers, areNew }
}

/**
 * Plans and writes these threads.
 *
 * @param toSum whether all of them must be summed: decided once, because a token may become stale at any moment.
 * @param onLastWrite see `store`.
 */
async function storeRound(deps: RoundDeps, ready: readonly ReadThread[], toSum: boolean, onLastWrite: () => void) {
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
    const ids = new Set(stored.map(({ source }) => source._id))
    const refused = rounds.filter(({ work }) => !ids.has(work.id))
    for (const round of refused) noteRefused(round, open, toSum)
    const opened = stored
      .filter(({ round, isFinal }) => isFinal && writesQuotes(round))
      .map(({ source: { _id: id, meta } }) => ({ id, epoch: meta.epoch }))
    // The epochs of the opened sources are checked when the batch has ended. Without quotes to write there is no batch.
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
