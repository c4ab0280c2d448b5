import assert from 'node:assert/strict'
import { type PostRequest, repairSources } from '@sluice/store'
import { aThread as aNewThread } from './a-thread.ts'
import { clockAhead, openStore } from './open-store.ts'
import { openTokens } from './open-tokens.ts'

// Threads whose quotes have two words each, and the write commands by which a process stores one.

/**
 * The writes of a process whose batch has one thread: it opens the source, writes the quotes, and
 * raises its watermark.
 */
export const [OPENING, QUOTES, WATERMARK] = [1, 2, 3]
/**
 * If the process must sum, it reserves the source instead of opening it, sets a new epoch, writes
 * the quotes, and commits the source before the answer.
 */
export const [EPOCH, COMMIT] = [2, 4]
/**
 * If another process summed the source meanwhile, the process recounts before it raises its
 * watermark: it reserves the source, sets a new epoch, and writes the totals.
 */
export const RECOUNT = { reservation: 3, epoch: 4, totals: 5 }

/** A repair counts the writer of a token this old as dead. */
const EXPIRED_MS = 120_000

/** Threads in a database of the suite's own. Call it within `describe`. */
export function openThreads(name: string) {
  const { client, db, commands, sources } = openStore(name, { monitorCommands: true })
  let sums = 0
  client.on('commandStarted', ({ commandName }) => {
    if (commandName === 'aggregate') sums += 1
  })

  function aThread() {
    const { says: saysQuotes, sourceId: _id } = aNewThread()
    const says = (place: number, ...externalIds: string[]): PostRequest =>
      saysQuotes(place, ...externalIds.map((externalId) => ({ externalId, text: 'two words' })))
    /** The stored totals, and the requests whose tokens are open. */
    async function found() {
      const stored = await sources.findOne({ _id })
      assert(stored !== null)
      return {
        quotes: stored.quoteCount,
        words: stored.wordCount,
        open: await openTokens(db, stored),
      }
    }
    return { says, found }
  }

  /** Repairs all sources, and counts every token as a dead writer's. */
  const repairLater = () => repairSources(commands, { repair: true }, clockAhead(EXPIRED_MS))

  /** Runs this and returns how often quotes were summed meanwhile. */
  async function countSums(act: () => Promise<unknown>): Promise<number> {
    const before = sums
    await act()
    return sums - before
  }
  return { db, commands, aThread, repairLater, countSums }
}
