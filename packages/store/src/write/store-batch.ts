// Stores batches of requests: read, plan, open, write, commit, and again for threads that another process wrote
// meanwhile.
import type { StoredAnswer, StoreRequest, ThreadWork } from '../documents.ts'
import { answersOf, groupByThread } from '../merge/plan.ts'
import type { Runtime, StoreCommands } from '../mongodb/commands.ts'
import { processRuntime } from '../mongodb/mongo-commands.ts'
import { asStoreAway } from '../mongodb/store-errors.ts'
import { createSlices, SLICE_MS } from '../words/slices.ts'
import { type ReadThread, readThreads } from './read-stored.ts'
import { dropUnopened, type UnendedBatch } from './refused-threads.ts'
import { type RoundDeps, storeRound } from './round.ts'
import { recountRequests } from './sum-sources.ts'
import { createIsExcluded, createWatermarks, needsSum } from './tokens.ts'
import { createWriter } from './writer.ts'

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
