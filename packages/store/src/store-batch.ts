import { setTimeout as delay } from 'node:timers/promises'
import { type Collections, createIndexes } from './collections.ts'
import { commitSources } from './commit-sources.ts'
import { openSources } from './open-sources.ts'
import { planThread } from './plan-thread.ts'
import { readThreads } from './read-threads.ts'
import type { StoreRequest } from './store-request.ts'
import { asUnreachable } from './store-unreachable-error.ts'
import { answersOf, type StoredAnswer, type ThreadRound, type ThreadWork, tell, workOf } from './thread-work.ts'
import { countNewWords, writeQuotes } from './write-quotes.ts'

/** Two workers that write the same thread again and again would each win at times; so many losses in a row mean that something is wrong. */
const MAX_ROUNDS = 100

/**
 * Stores a batch of requests and gives each one's answer by its id, when all of it is written with majority write concern. For new
 * threads that nobody else touches it costs one read, two inserts and one update, shared by all of the batch. What a guard refused (somebody
 * else wrote the document since it was read) is read and merged again. Calling it again with the same requests, at any time, by any worker, does no harm.
 *
 * @param onCommit called when nothing is left to be sent but the batch's last write, unless some guard refuses.
 * @throws {StoreUnreachableError} where MongoDB can't be reached: nothing is known of what was written, and trying again is right.
 */
export async function storeBatch(
  store: Collections,
  requests: readonly StoreRequest[],
  onCommit: () => void = () => {},
): Promise<Map<string, StoredAnswer>> {
  const answers = new Map<string, StoredAnswer>()
  let pending = workOf(requests)
  try {
    for (let round = 0; pending.length > 0; round++) {
      if (round === MAX_ROUNDS)
        throw new Error(`${pending.length} threads were written by others ${MAX_ROUNDS} times in a row`)
      if (round > 2) await delay(Math.random() * Math.min(round * 4, 100))
      pending = await storeRound(store, pending, answers, onCommit)
    }
  } catch (error) {
    throw asUnreachable(error)
  }
  return answers
}

/** Takes each thread as far as its guards let it, and gives those that need another round. */
async function storeRound(
  store: Collections,
  works: ThreadWork[],
  answers: Map<string, StoredAnswer>,
  onCommit: () => void,
): Promise<ThreadWork[]> {
  const read = await readThreads(store, works)
  const rounds = read.map(
    ({ work, stored }): ThreadRound => ({ work, stored, plan: planThread(stored, work.requests) }),
  )
  await countNewWords(rounds)
  const opened = await openSources(store, rounds)
  const written = await writeQuotes(store, opened)
  const committing = commitSources(store, written)
  onCommit()
  const committed = await committing
  for (const { round, refusedQuotes } of written) tell(round, refusedQuotes, committed.has(round.work.id))
  const again: ThreadWork[] = []
  for (const round of rounds) {
    const source = committed.get(round.work.id)
    if (source === undefined) again.push({ ...round.work, uncounted: true })
    else for (const [id, answer] of answersOf(round, source)) answers.set(id, answer)
  }
  return again
}

/**
 * `storeBatch` on these collections, whose index is made before the first batch: where MongoDB is away at first, as soon as it is there.
 */
export function createBatchStore(
  store: Collections,
): (requests: readonly StoreRequest[], onCommit?: () => void) => Promise<Map<string, StoredAnswer>> {
  let isIndexed = false
  return async (requests, onCommit) => {
    if (!isIndexed) await createIndexes(store).catch((error) => Promise.reject(asUnreachable(error)))
    isIndexed = true
    return storeBatch(store, requests, onCommit)
  }
}
