// Stores threads that are stored already, or that another process writes too: reads them, repeats refused rounds, and commits sources that could not
// be opened in their final form, which are those to sum and those that get a new cover beside changed quotes.
import type { OpenThread, SourceDocument, ThreadRound, ThreadWork, WriterToken } from '../documents.ts'
import type { GuardedWrite } from '../mongodb/commands.ts'
import { type ReadThread, readThreads } from './read-stored.ts'
import { prepareSum, type RecountDeps, sumQuotes } from './recount.ts'
import { isMine, needsSum, tokensAfterSum } from './tokens.ts'
import { totalsAfter, type WriteDeps, writeGuarded } from './write-threads.ts'
import type { Writer } from './writer.ts'

/** Of two workers that write one thread, each succeeds at times. So many rounds with a refusal mean a fault. */
const MAX_REFUSED_ROUNDS = 100
/** The back-off before another round doubles up to this, in ms, and is random below it. */
const MAX_BACK_OFF_MS = 100

/** Runs one round for threads of a batch, and returns those that need another round. */
type StoreRound = (ready: readonly ReadThread[], toSum: boolean) => Promise<ThreadWork[]>

/**
 * Reads and stores these threads, round after round. Returns whether none of them was stored before.
 *
 * @param wereRefused whether a first round, which took all of them for new, was refused.
 */
export async function storeKnown(
  deps: RecountDeps & { writer: Writer },
  works: readonly ThreadWork[],
  wereRefused: boolean,
  storeRound: StoreRound,
): Promise<boolean> {
  const { runtime } = deps
  let pending = works
  let areNew = true
  let refusedRounds = wereRefused ? 1 : 0
  for (let round = refusedRounds; pending.length > 0; round++) {
    if (round > 1) await runtime.delay(runtime.random() * Math.min(2 ** round, MAX_BACK_OFF_MS))
    const ready = await readThreads(deps, pending)
    areNew &&= ready.length === pending.length && ready.every(({ stored }) => stored.source === undefined)
    const isToSum = ({ work, stored }: ReadThread) =>
      stored.source !== undefined && needsSum(runtime, work, stored.source)
    const [summed, others] = [ready.filter(isToSum), ready.filter((read) => !isToSum(read))]
    const excludedButOpened = pending.filter((work) => work.mayHaveToken && !ready.some((read) => read.work === work))
    const refused = await storeRound(others, false)
    // After the others and in a batch of their own: a process that sums waits for writers, so no process may wait for it.
    refused.push(...(await storeRound(summed, true)))
    if (refused.length > 0) refusedRounds += 1
    if (refusedRounds === MAX_REFUSED_ROUNDS)
      throw new Error(`other processes won ${refused.length} threads ${refusedRounds} times in a row`)
    pending = [...refused, ...excludedButOpened]
  }
  return areNew
}

/** Prepares the next round of refused threads. Returns whether a token of one of them may be left open. */
export function noteRefused(refused: readonly ThreadRound[], open: readonly OpenThread[]): boolean {
  // A refused update may have taken effect and been overwritten since: then our token is still in the source.
  const isLeftOpen = ({ work, stored: read }: ThreadRound) =>
    read.source !== undefined || open.some(({ round }) => round.work === work)
  for (const round of refused) {
    if (!isLeftOpen(round)) continue
    round.work.mayHaveToken = true
    // As after an earlier delivery, a refused update may have taken effect and been overwritten since.
    round.work.requests = round.work.requests.map((request) => ({ ...request, redelivered: true }))
  }
  return refused.some(isLeftOpen)
}

/** Sets a new epoch in the sources of these threads, so that their sums may begin. Omits the refused ones. */
export async function withNewEpochs(deps: RecountDeps, open: readonly OpenThread[]): Promise<OpenThread[]> {
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

/**
 * Writes the planned fields and the totals, and removes the tokens of these requests.
 *
 * @param written the threads whose quotes are all written, also final ones, which need no commit. For those to sum, `withNewEpochs` was called before.
 * @returns the sources as they are stored, by id, without the refused ones.
 */
export async function commitSources(
  { commands, runtime }: WriteDeps,
  written: readonly OpenThread[],
): Promise<Map<string, SourceDocument>> {
  const threads = written.filter(({ kind }) => kind !== 'final')
  if (threads.length === 0) return new Map()
  const toSum = threads.filter(({ kind }) => kind === 'sum').map(({ round }) => round.work.id)
  const sums = await sumQuotes(commands, toSum)
  const version = runtime.newId()
  const sources = threads.map(({ round, source: opened }): SourceDocument => {
    const { work, plan, quoteWrites } = round
    const { epoch, tokens: before = [] } = opened.meta
    const tokens = tokensAfterSum(runtime, before, (token) => isMine(work, token))
    const { tokens: _, ...meta } = plan.source.document.meta
    return {
      ...plan.source.document,
      ...(sums.get(work.id) ?? totalsAfter(opened, quoteWrites)),
      meta: { ...meta, version, ...(epoch && { epoch }), ...(tokens.length > 0 && { tokens }) },
    }
  })
  const writes = sources.map((source, at): GuardedWrite => {
    return { id: source._id, read: threads[at]?.source.meta.version ?? version, replace: source }
  })
  const refused = await writeGuarded(commands, 'sources', writes, version)
  return new Map(sources.filter(({ _id }) => !refused.has(_id)).map((source) => [source._id, source]))
}
