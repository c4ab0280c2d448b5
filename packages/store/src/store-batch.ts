import { setTimeout as delay } from 'node:timers/promises'
import { type Collections, createIndexes } from './collections.ts'
import { commitSources } from './commit-sources.ts'
import type { WriterBatch } from './documents.ts'
import { openSources } from './open-sources.ts'
import { planThread } from './plan-thread.ts'
import { type ReadThread, readThreads } from './read-threads.ts'
import type { StoreRequest } from './store-request.ts'
import { asUnreachable } from './store-unreachable-error.ts'
import { answersOf, type StoredAnswer, type ThreadRound, type ThreadWork, tell, workOf } from './thread-work.ts'
import { countNewWords, writeQuotes } from './write-quotes.ts'
import { createWriter, type Writer } from './writer.ts'

/** Two workers that write the same thread again and again would each win at times; so many losses in a row mean that something is wrong. */
const MAX_ROUNDS = 100

interface BatchOptions {
  /** Spares the read where all of the threads are new; where one is not, it is read in another round. */
  takenForNew: boolean
  onLastWrite?: (() => void) | undefined
}

/** What became of a batch: each request's answer by its id, and whether none of the threads was stored before. */
interface StoredBatch {
  answers: Map<string, StoredAnswer>
  areNew: boolean
}

/**
 * Stores a batch of requests, and resolves when all of it is written with majority write concern. For new threads that nobody else touches it costs one
 * read and two inserts, shared by all of the batch. What a guard refused (somebody else wrote the document since it was read) is read and merged again.
 * Calling it again with the same requests, at any time, by any writer, does no harm.
 *
 * @throws {StoreUnreachableError} where MongoDB can't be reached: nothing is known of what was written, and trying again is right.
 */
async function storeBatch(
  store: Collections,
  writer: Writer,
  requests: readonly StoreRequest[],
  { takenForNew, onLastWrite = () => {} }: BatchOptions,
): Promise<StoredBatch> {
  const answers = new Map<string, StoredAnswer>()
  let own: WriterBatch | undefined
  const begin = async () => (own ??= await writer.begin())
  let pending = workOf(requests)
  let areNew = true
  try {
    for (let round = 0; pending.length > 0; round++) {
      if (round === MAX_ROUNDS)
        throw new Error(`${pending.length} threads were written by others ${MAX_ROUNDS} times in a row`)
      if (round > 2) await delay(Math.random() * Math.min(round * 4, 100))
      const read = round === 0 && takenForNew ? pending.map(asNew) : await readThreads(store, writer, pending, own)
      areNew &&= read.every(({ stored }) => stored.source === undefined)
      const rounds = await planRounds(read)
      pending = await storeRounds(store, rounds, answers, begin, onLastWrite)
    }
  } catch (error) {
    if (own !== undefined) writer.abandon(own)
    throw asUnreachable(error)
  }
  if (own !== undefined) writer.end(own)
  return { answers, areNew }
}

function asNew(work: ThreadWork): ReadThread {
  return { work, stored: { quotes: new Map() } }
}

async function planRounds(read: ReadThread[]): Promise<ThreadRound[]> {
  const rounds = read.map(
    ({ work, stored }): ThreadRound => ({ work, stored, plan: planThread(stored, work.requests) }),
  )
  await countNewWords(rounds)
  return rounds
}

/** Takes each thread as far as its guards let it, and gives those that need another round. */
async function storeRounds(
  store: Collections,
  rounds: ThreadRound[],
  answers: Map<string, StoredAnswer>,
  begin: () => Promise<WriterBatch>,
  onLastWrite: () => void,
): Promise<ThreadWork[]> {
  const opened = await openSources(store, rounds, begin)
  const needCommit = opened.some(({ isFinal }) => !isFinal)
  const writing = writeQuotes(store, opened)
  if (!needCommit) onLastWrite()
  const written = await writing
  const committing = commitSources(store, written)
  if (needCommit) onLastWrite()
  const committed = await committing
  for (const { round, refusedQuotes } of written) tell(round, refusedQuotes, committed.has(round.work.id))
  const isOpen = new Set(opened.map(({ round }) => round.work.id))
  const again: ThreadWork[] = []
  for (const round of rounds) {
    const source = committed.get(round.work.id)
    if (source === undefined)
      again.push({ ...round.work, uncounted: round.work.uncounted || isOpen.has(round.work.id) })
    else for (const [id, answer] of answersOf(round, source)) answers.set(id, answer)
  }
  return again
}

/** What stores batches under one name, of which others know how far it has got. */
interface BatchStore {
  store(requests: readonly StoreRequest[], onLastWrite?: () => void): Promise<Map<string, StoredAnswer>>
  /** Resolves when others know that all which was stored is whole. */
  close(): Promise<void>
}

/**
 * `storeBatch` on these collections, whose index is made before the first batch: where MongoDB is away at first, as soon as it is there.
 */
export function createBatchStore(store: Collections): BatchStore {
  const writer = createWriter(store)
  let isIndexed = false
  // Threads come as they came: an importer's first burst is all new, its next one all known.
  let wereNew = false
  return {
    async store(requests, onLastWrite) {
      if (!isIndexed) await createIndexes(store).catch((error) => Promise.reject(asUnreachable(error)))
      isIndexed = true
      const takenForNew = wereNew && !requests.some(({ redelivered }) => redelivered)
      const { answers, areNew } = await storeBatch(store, writer, requests, { takenForNew, onLastWrite })
      wereNew = areNew
      return answers
    },
    close: () => writer.closeAll(),
  }
}
