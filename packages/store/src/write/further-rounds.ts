// The further rounds of a batch: for threads that a round was refused, because another process wrote them meanwhile, and
// for threads that must be summed. A numbered batch ends when its refused threads are stored, or have no token of it.
import type { OpenThread, ThreadRound, ThreadWork, WriterBatch, WriterToken } from '../documents.ts'
import type { WriteDeps } from './guarded-writes.ts'
import { type ReadThread, readThreads } from './read-stored.ts'
import type { SumDeps } from './sum-sources.ts'
import { needsSum } from './tokens.ts'
import type { Writer } from './writer.ts'
import type { OpenedSource } from './writer-state.ts'

interface BegunBatch {
  batch: WriterBatch
  /** The sources whose epochs are to be checked when the batch has ended. */
  opened: readonly OpenedSource[]
}

export interface RoundResult {
  /** The threads that need another round. */
  again: ThreadWork[]
  /** Undefined if no quote had to be written. */
  begun?: BegunBatch | undefined
}

/** Plans and writes threads, and sums them if `toSum`. */
export type StoreRound = (ready: readonly ReadThread[], toSum: boolean) => Promise<RoundResult>

/** A batch that has not ended: the source of a refused thread may have a token. */
interface UnendedBatch extends BegunBatch {
  /** The refused threads. */
  refused: Set<string>
}

/** Workers that write one thread refuse each other's writes at times. More rounds with a refusal mean a fault. */
const MAX_REFUSED_ROUNDS = 100
/** The pause before another round is random. Its bound doubles each round, up to this. */
const MAX_BACK_OFF_MS = 100

/**
 * Stores the rest of a batch, round after round. Returns whether no thread was stored before. Threads are summed after
 * the others, under a batch number of their own: a sum waits for writers, so no writer may wait for a sum.
 *
 * @param toSum the threads of the first read that must be summed.
 */
export async function storeFurther(
  deps: SumDeps & { writer: Writer },
  storeRound: StoreRound,
  first: RoundResult,
  toSum: readonly ReadThread[],
): Promise<boolean> {
  const { runtime, writer } = deps
  let unended: UnendedBatch[] = []
  let areNew = true
  let refusedRounds = 0
  const isToSum = ({ work, stored: { source } }: ReadThread) => source !== undefined && needsSum(runtime, work, source)
  function endFinished(): void {
    for (const { batch, opened, refused } of unended) if (refused.size === 0) writer.end(batch, opened)
    unended = unended.filter(({ refused }) => refused.size > 0)
  }
  function note({ again, begun }: RoundResult, ready: readonly ReadThread[]): ThreadWork[] {
    const stored = ready.filter(({ work }) => !again.includes(work))
    for (const { work } of stored) for (const { refused } of unended) refused.delete(work.id)
    if (begun !== undefined) unended.push({ ...begun, refused: new Set(again.map(({ id }) => id)) })
    endFinished()
    return again
  }
  const write = async (ready: readonly ReadThread[], toSum: boolean) => note(await storeRound(ready, toSum), ready)
  try {
    let pending = [...note(first, []), ...(await write(toSum, true))]
    for (let round = 1; pending.length > 0; round++) {
      if (round > 1) await runtime.delay(runtime.random() * Math.min(2 ** round, MAX_BACK_OFF_MS))
      const read = await readThreads(deps, pending)
      if (unended.length > 0) {
        await dropUnopened(deps, unended, read)
        endFinished()
      }
      const ready = read.filter(({ isExcluded }) => !isExcluded)
      areNew &&= ready.length === read.length && ready.every(({ stored }) => stored.source === undefined)
      const toSum = ready.filter(isToSum)
      const others = ready.filter((thread) => !toSum.includes(thread))
      const again = [...(await write(others, false)), ...(await write(toSum, true))]
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
  return areNew
}

/**
 * Removes the threads from the batches whose tokens their sources do not have. If a refused update took effect and was
 * overwritten, its token is there. A majority must have the source without the token: another write that removed the
 * token can be rolled back.
 */
async function dropUnopened(
  { commands }: WriteDeps,
  unended: readonly UnendedBatch[],
  read: readonly ReadThread[],
): Promise<void> {
  const works = read.map(({ work }) => work).filter(({ id }) => unended.some(({ refused }) => refused.has(id)))
  const ids = works.map(({ id }) => id)
  const found = await commands.find('sources', ids, 'majority')
  const tokens = new Map(found.map(({ _id, meta }) => [_id, meta.tokens ?? []]))
  for (const { batch, refused } of unended) {
    const isOwn = (token: WriterToken) => token.writer === batch.writer && token.batch === batch.batch
    for (const work of works.filter(({ id }) => refused.has(id))) {
      if (tokens.get(work.id)?.some(isOwn)) work.mayHaveChanged = true
      else refused.delete(work.id)
    }
  }
}

/** Prepares a refused thread for another round. */
export function noteRefused(round: ThreadRound, open: readonly OpenThread[], toSum: boolean): void {
  const { work, stored } = round
  const isOpened = open.some((thread) => thread.round === round)
  // If a refused insert took effect after all, `meta.insertedBy` names the request, and the outcome is right.
  if (!isOpened && stored.source === undefined) return
  // A refused update may have taken effect and been overwritten since, so the outcomes are those of a later delivery.
  work.requests = work.requests.map((request) => ({ ...request, redelivered: true }))
  // The next read shows whether a refused opening left a token.
  work.mayHaveChanged ||= isOpened || !(toSum || round.quoteWrites.length > 0)
}
