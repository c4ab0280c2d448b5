// Stores a batch of requests in one round (read, plan, open, write, commit), or in more rounds if
// other processes write the same threads.
import { ERASED, type Outcome, type QuoteOutcome } from '@sluice/contract'
import {
  type DeleteRequest,
  type InputThread,
  isLive,
  type OpenThread,
  type PostRequest,
  type QuoteDocument,
  type SourceDocument,
  type StoreAnswer,
  type StoredAnswer,
  type StoreRequest,
  type ThreadRound,
  type ThreadWork,
} from '../documents.ts'
import { sourceIdOfRequest } from '../ids.ts'
import {
  inputRedaction,
  inputThread,
  newQuote,
  newSource,
  textDigestOf,
  UNCOUNTED,
} from '../merge/drafts.ts'
import { planThread } from '../merge/merge.ts'
import { asCommandFailed, type StoreCommands } from '../mongodb/commands.ts'
import { processRuntime, type Runtime } from '../mongodb/mongo-commands.ts'
import { countWords, createSlices, SLICE_MS, type Slices } from '../words/count-words.ts'
import { deleteSources } from './delete-sources.ts'
import { needsNoWrite, openSources, writeQuotes } from './guarded-writes.ts'
import {
  prepareNextRound,
  type ReadDeps,
  type ReadThread,
  readAgain,
  readStoredThreads,
} from './read-stored.ts'
import { recount, writeAndCommit, writeAndSum } from './sum-sources.ts'
import { createIsExcluded, createWatermarks, needsSum } from './tokens.ts'
import { createWriter, type UnendedBatch } from './writer.ts'

export type BatchStore = ReturnType<typeof createBatchStore>

/** Creates the store of a process. It prepares the database before the first batch. */
export function createBatchStore(commands: StoreCommands, runtime: Runtime = processRuntime) {
  const sumDeps = {
    commands,
    runtime,
    watermarks: createWatermarks(commands),
    isExcluded: createIsExcluded(runtime),
  }
  const deps = {
    ...sumDeps,
    writer: createWriter(sumDeps),
    slices: createSlices(SLICE_MS, runtime.monotonic),
  }
  let isPrepared = false
  // Imports are mostly all new or all known. So after a batch of only new threads, the next one is
  // written without reading first. If a thread is stored after all, its insert is refused, and the
  // next round reads it.
  let wereNew = false

  /**
   * Stores a batch. Returns the answers by request id once everything is written with majority. A
   * request gets no answer while another process sums its thread: store it again, which is safe at
   * any time and in any process.
   * @param onLastWrite is called in each round when its commits are sent or, if it commits nothing,
   * when its first command of quotes is sent. Not called for threads that are summed.
   * @throws {CommandFailedError} if the outcome of the writes is not known.
   */
  function store(
    requests: readonly PostRequest[],
    onLastWrite?: () => void,
  ): Promise<Map<string, StoredAnswer>>
  function store(
    requests: readonly StoreRequest[],
    onLastWrite?: () => void,
  ): Promise<Map<string, StoreAnswer>>
  async function store(
    requests: readonly StoreRequest[],
    onLastWrite = () => {},
  ): Promise<Map<string, StoreAnswer>> {
    try {
      if (!isPrepared) await commands.prepare()
      isPrepared = true
      const posts = requests.filter((request) => 'thread' in request)
      const deletions = requests.filter((request) => 'deletes' in request)
      const redactions = deletions.filter(({ deletes }) => deletes.redacts)
      const toDelete = deletions.filter(({ deletes }) => !deletes.redacts)
      const answers = new Map<string, StoreAnswer>(
        toDelete.length > 0 ? await deleteSources(sumDeps, toDelete) : [],
      )
      const storeRedactions = async () => {
        const read = await readRedactions(deps, redactions, answers)
        await storeBatch({ ...deps, answers, unended: new Set(), onLastWrite }, read)
        return answers
      }
      if (posts.length === 0) return redactions.length > 0 ? await storeRedactions() : answers
      const works = groupByThread(posts.map(inputThread))
      const read =
        wereNew && !works.some(({ readsMajority }) => readsMajority)
          ? works.map(
              (work): ReadThread => ({ work, stored: { quotes: new Map() }, isExcluded: false }),
            )
          : await readStoredThreads(deps, works)
      wereNew = await storeBatch({ ...deps, answers, unended: new Set(), onLastWrite }, read)
      // After the posts: a redaction changes only what is stored.
      return redactions.length > 0 ? await storeRedactions() : answers
    } catch (error) {
      throw asCommandFailed(error)
    }
  }

  return {
    store,
    /**
     * Recounts the sources of requests whose jobs failed permanently.
     * @throws {CommandFailedError} as `store` does.
     */
    async recountRequests(requests: readonly StoreRequest[]): Promise<void> {
      const ids = new Set(requests.map(sourceIdOfRequest))
      // Remove only expired tokens, because a late command of a failed request may still take
      // effect.
      await recount(sumDeps, [...ids], () => false).catch((error) =>
        Promise.reject(asCommandFailed(error)),
      )
    },
    settle: deps.writer.settle,
  }
}

interface Batch extends ReadDeps {
  slices: Slices
  answers: Map<string, StoreAnswer>
  unended: Set<UnendedBatch>
  onLastWrite: () => void
}

/**
 * Stores a batch in as many rounds as it needs (see read-stored.ts). Returns whether all threads
 * were new.
 */
async function storeBatch(batch: Batch, first: readonly ReadThread[]): Promise<boolean> {
  let read = first
  let areNew = true
  try {
    for (let round = 1; ; round++) {
      const ready = read.filter(({ isExcluded }) => !isExcluded)
      areNew &&=
        ready.length === read.length && ready.every(({ stored }) => stored.source === undefined)
      const toSum = ready.filter(
        ({ work, stored: { source } }) => source && needsSum(batch.runtime, work, source),
      )
      const others = ready.filter((thread) => !toSum.includes(thread))
      // Threads to sum go last, with a batch number of their own: a sum waits for writers, so no
      // writer may wait for a sum.
      await storeRound(batch, others, false)
      await storeRound(batch, toSum, true)
      const left = read.filter(
        ({ isExcluded, work }) => !work.isStored && (!isExcluded || work.mayHaveChanged),
      )
      if (left.length === 0) return areNew
      read = await readAgain(batch, left, round)
      endStored(batch)
    }
  } catch (error) {
    for (const one of batch.unended) batch.writer.abandon(one)
    throw error
  }
}

/**
 * Plans and writes these threads, and adds the answers for the threads that were not refused.
 * @param toSum whether all of them must be summed. The caller decides it once, because a token may
 * become stale at any moment.
 */
async function storeRound(
  batch: Batch,
  ready: readonly ReadThread[],
  toSum: boolean,
): Promise<void> {
  if (ready.length === 0) return
  const { runtime, writer, answers, unended, onLastWrite } = batch
  const planned = await planRounds(ready, batch.slices)
  // An answer without a write must not depend on a source that may be rolled back, so read such a
  // thread again.
  const toConfirm = planned.filter(
    (round) =>
      round.stored.source !== undefined &&
      !toSum &&
      !round.work.readsMajority &&
      needsNoWrite(round),
  )
  for (const { work } of toConfirm) work.readsMajority = true
  const toStore = planned.filter((round) => !toConfirm.includes(round))
  const openedAt = runtime.monotonic()
  const writesQuotes = toSum || toStore.some(({ plan }) => plan.quoteWrites.length > 0)
  const begun = writesQuotes ? writer.begin(planned.map(({ work }) => work)) : undefined
  if (begun !== undefined) unended.add(begun)
  const opened = await openSources(batch, toStore, begun?.batch, toSum)
  const write = toSum
    ? writeAndSum
    : opened.every(({ isFinal }) => isFinal)
      ? writeQuotes
      : writeAndCommit
  const stored = await write(batch, opened, openedAt, onLastWrite)
  for (const thread of stored) {
    thread.work.isStored = true
    for (const [id, answer] of answersOf(thread)) answers.set(id, answer)
  }
  for (const round of toStore) if (!round.work.isStored) prepareNextRound(round, opened, toSum)
  // The totals of these were stored before their quotes, so a sum in between may have missed the
  // quotes.
  const toCheck = stored.filter(({ isFinal, plan }) => isFinal && plan.quoteWrites.length > 0)
  if (begun !== undefined)
    begun.opened = toCheck.map(({ source: { _id, meta } }) => ({ id: _id, epoch: meta.epoch }))
  endStored(batch)
}

/**
 * Plans each thread. Adds word counts and text digests to the quotes to write. Their versions are
 * set later.
 */
async function planRounds(ready: readonly ReadThread[], slices: Slices): Promise<ThreadRound[]> {
  const rounds = ready.map(({ work, stored }) => ({
    work,
    stored,
    plan: planThread(stored, work.requests),
  }))
  const documents = rounds.flatMap(({ plan }) => plan.quoteWrites.map(({ document }) => document))
  const uncounted = documents.filter(({ wordCount }) => wordCount === UNCOUNTED)
  const texts = uncounted.map(({ text }) => text)
  const counts = await countWords(texts, slices)
  uncounted.forEach((document, at) => {
    document.wordCount = document.text === ERASED ? 0 : (counts[at] ?? 0)
    document.meta.textDigest = textDigestOf(document.text)
  })
  return rounds
}

/** Ends each batch whose threads are all stored, or do not have the batch's token. */
function endStored({ writer, unended }: Batch): void {
  for (const one of unended) {
    one.left = one.left.filter(({ isStored }) => !isStored)
    if (one.left.length > 0) continue
    unended.delete(one)
    writer.end(one)
  }
}

/** Reads the threads of redactions. Adds the answers for sources that are not the tenant's. */
async function readRedactions(
  deps: ReadDeps,
  redactions: readonly DeleteRequest[],
  answers: Map<string, StoreAnswer>,
): Promise<ReadThread[]> {
  const ids = redactions.map(({ deletes }) => deletes.sourceId)
  const found = await deps.commands.find('sources', ids, 'majority')
  const sources = new Map(found.map((source) => [source._id, source]))
  const inputs = redactions.flatMap((request) => {
    const source = sources.get(request.deletes.sourceId)
    if (source && isLive(source) && source.tenant === request.tenant)
      return [inputRedaction(request, source)]
    answers.set(request.id, { outcome: 'absent', quotes: 0 })
    return []
  })
  return readStoredThreads(deps, groupByThread(inputs))
}

/** Groups a batch's requests by thread. Each group is in the order of acceptance. */
function groupByThread(inputs: readonly InputThread[]): ThreadWork[] {
  const byThread = Map.groupBy(inputs, ({ names }) => names._id)
  return Array.from(byThread, ([id, ofThread]) => {
    const requestsInOrder = ofThread.sort((one, other) => one.stamp - other.stamp)
    const readsMajority = ofThread.some(({ redelivered }) => redelivered)
    return {
      id,
      requests: requestsInOrder,
      mayHaveChanged: false,
      mayHaveQuotes: false,
      readsMajority,
      refusals: 0,
      isStored: false,
    }
  })
}

/** Makes the answer to each request of a stored thread, by the request's id. */
function answersOf({ work, plan, source }: OpenThread): [string, StoreAnswer][] {
  return work.requests.map((request, at) => {
    const { source: outcome, quotes: outcomes } = plan.outcomes[at] ?? {}
    if (request.redacts) {
      const quotes = outcomes?.filter((one) => one === 'updated').length ?? 0
      return [request.id, { outcome: outcome === 'updated' ? 'deleted' : 'absent', quotes }]
    }
    const quotes = request.quotes.map((quote, index) => {
      // The answer to a deleted request has what it sent: nothing of it is stored.
      const draft =
        outcomes?.[index] === 'deleted'
          ? newQuote(quote, request, 0)
          : plan.quotes.get(quote.names._id)
      if (draft === undefined) throw new Error(`quote ${quote.names._id} was not planned`)
      const outcome = outcomes?.[index] ?? 'unchanged'
      const isSuppressed = quote.isSuppressed && outcome !== 'deleted'
      return quoteAnswer(draft.document, isSuppressed ? 'suppressed' : outcome)
    })
    const document = isLive(source) && outcome !== 'deleted' ? source : newSource(request).document
    return [request.id, { source: sourceAnswer(document, outcome ?? 'unchanged'), quotes }]
  })
}

function sourceAnswer(document: SourceDocument, outcome: Outcome): StoredAnswer['source'] {
  const { _id, tenant, acceptedAt, quoteCount, meta, createdAt, description, ...fields } = document
  return {
    id: _id,
    ...fields,
    description: description ?? null,
    createdAt: createdAt.toISOString(),
    outcome,
  }
}

function quoteAnswer(
  document: QuoteDocument,
  outcome: QuoteOutcome,
): StoredAnswer['quotes'][number] {
  const { _id, sourceId, position, wordCount, meta, createdAt, ...fields } = document
  return { id: _id, ...fields, ...(createdAt && { createdAt: createdAt.toISOString() }), outcome }
}
