import { ObjectId } from 'mongodb'
import type { Collections } from './collections.ts'
import { type GuardedWrite, writeGuarded } from './guarded-write.ts'
import { type QuoteDraft, UNCOUNTED } from './merge-quote.ts'
import type { OpenThread } from './open-sources.ts'
import type { ThreadRound } from './thread-work.ts'
import { countWordsAsync } from './words/count-words-async.ts'
import { WRITER_PATIENCE_MS } from './writer-lifetime.ts'

/** A thread whose quotes are written, but for those that were refused. */
export interface WrittenThread extends OpenThread {
  refusedQuotes: ReadonlySet<string>
}

const NONE: ReadonlySet<string> = new Set()

/** Counts the words of texts that are new, without holding the event loop. */
export async function countNewWords(rounds: ThreadRound[]): Promise<void> {
  const uncounted = rounds.flatMap(({ plan }) =>
    plan.quoteWrites.map((draft) => draft.document).filter((document) => document.wordCount === UNCOUNTED),
  )
  const counts = await countWordsAsync(uncounted.map((document) => document.text))
  uncounted.forEach((document, at) => {
    document.wordCount = counts[at] ?? 0
  })
}

/**
 * Writes the quotes of all opened threads together.
 *
 * @throws where the sources were opened so long ago (a paused process) that others no longer count on these writers.
 */
export async function writeQuotes({ guardedQuotes }: Collections, threads: OpenThread[]): Promise<WrittenThread[]> {
  const version = new ObjectId()
  const writes = threads.flatMap(({ round }) => round.plan.quoteWrites.map((draft) => writeOf(draft, version)))
  if (writes.length === 0) return threads.map((thread) => ({ ...thread, refusedQuotes: NONE }))
  const opened = Math.min(...threads.map((thread) => thread.openedAt))
  const refused = await writeGuarded(guardedQuotes, writes, version, () => {
    if (performance.now() - opened > WRITER_PATIENCE_MS) throw new Error('this writer was paused for too long to go on')
  })
  return threads.map((thread) => ({ ...thread, refusedQuotes: refused }))
}

function writeOf({ stored, document }: QuoteDraft, version: ObjectId): GuardedWrite {
  document.meta.version = version
  if (stored === undefined) return { insert: document }
  return { id: document._id, read: stored.meta.version, replace: document }
}
