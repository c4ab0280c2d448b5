import assert from 'node:assert/strict'
import { repairSources, type StoreRequest } from '@sluice/store'
import { aThread as aNewThread } from './a-thread.ts'
import { clockAhead, openStore } from './open-store.ts'
import { openTokens } from './open-tokens.ts'

// Threads whose quotes have two words each, and the write commands by which a process stores one.

/** The writes of a process whose batch has one thread: it opens the source, writes the quotes, and raises its watermark. */
export const [OPENING, QUOTES, WATERMARK] = [1, 2, 3]
/** Where an open token stands, the process reserves the source in place of opening it as final, and commits it before the answer. */
export const COMMIT = 3
/** Where the source moved since it was opened, the process recounts it before it raises its watermark: it marks the version, sums, and writes the totals. */
export const [MARK, TOTALS] = [3, 4]

/** A repair counts the writer of a token this old as dead. */
const SETTLED_MS = 120_000

/** Threads in a database of the suite's own. Call it within `describe`. */
export function openThreads(name: string) {
  const { db, commands, sources } = openStore(name)

  function aThread() {
    const { says: saysQuotes, sourceId: _id } = aNewThread()
    const says = (place: number, ...externalIds: string[]): StoreRequest =>
      saysQuotes(place, ...externalIds.map((externalId) => ({ externalId, text: 'two words' })))
    /** The stored totals, and the requests whose tokens are open. */
    async function found() {
      const stored = await sources.findOne({ _id })
      assert(stored !== null)
      return { quotes: stored.quoteCount, words: stored.wordCount, open: await openTokens(db, stored) }
    }
    return { says, found }
  }

  /** Repairs all sources, and counts every token as a dead writer's. */
  const repairLater = () => repairSources(commands, { repair: true }, clockAhead(SETTLED_MS))
  return { db, commands, aThread, repairLater }
}
