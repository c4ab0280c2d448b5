// Removes what is deleted of the quotes of sources, within a sum. Each later sum does so again,
// because a writer that opened the source before the deletion may store quotes late.
import {
  deletedUpTo,
  type GuardedWrite,
  type QuoteWithoutText,
  type SourceOrTombstone,
} from '../documents.ts'
import { REPLACED } from '../merge/merge.ts'
import { chunksOf, sendAll } from '../mongodb/commands.ts'
import { seenQuote } from '../seen-quotes.ts'
import { lastPositionOf } from '../stored-fields.ts'
import { type WriteDeps, writeGuarded } from './guarded-writes.ts'

const SOURCES_AT_ONCE = 8
/**
 * A thread may have a million quotes. After this time, a call removes no more of them, so that the
 * other requests of its batch do not wait for long: the next call continues.
 */
const REMOVE_MS = 1_000

/** Returns the sources that have nothing left to remove. */
export async function removeDeleted(
  deps: WriteDeps,
  sources: readonly SourceOrTombstone[],
): Promise<SourceOrTombstone[]> {
  const left = new Set<string>()
  const marked = sources.filter((source) => deletedUpTo(source) > 0)
  const until = deps.runtime.monotonic() + REMOVE_MS
  await sendAll(chunksOf(marked, 1), SOURCES_AT_ONCE, async (some) => {
    for (const source of some) if (!(await removeAll(deps, source, until))) left.add(source._id)
  })
  return sources.filter(({ _id }) => !left.has(_id))
}

/** Returns whether nothing is left to remove. */
async function removeAll(
  deps: WriteDeps,
  source: SourceOrTombstone,
  until: number,
): Promise<boolean> {
  const upTo = lastPositionOf(deletedUpTo(source))
  const limit = deps.commands.writesPerCommand
  for (let isDone = false; !isDone; ) {
    isDone = true
    let page: QuoteWithoutText[] = []
    do {
      const after = page.at(-1)?._id ?? source._id
      page = await deps.commands.findQuotesOf(source._id, { after, limit, upTo })
      if (!(await removeSome(deps, source, page))) isDone = false
      if (page.length > 0 && deps.runtime.monotonic() > until) return false
    } while (page.length === limit)
  }
  return true
}

/** Returns whether no quote of the page was written by another process meanwhile. */
async function removeSome(
  { commands, runtime }: WriteDeps,
  source: SourceOrTombstone,
  page: readonly QuoteWithoutText[],
): Promise<boolean> {
  const version = runtime.newId()
  const dead: string[] = []
  const writes: GuardedWrite[] = []
  for (const quote of page) {
    const seen = seenQuote({ ...quote, text: REPLACED }, source)
    if (seen === undefined) {
      dead.push(quote._id)
      continue
    }
    const { _id, sourceId, text: _, wordCount, meta, ...fields } = seen
    const gone = Object.keys(quote).filter((name) => !(name in seen))
    const u = {
      $set: { ...fields, meta: { ...meta, version } },
      ...(gone.length > 0 && { $unset: Object.fromEntries(gone.map((name) => [name, 1])) }),
    }
    writes.push({ stored: quote, document: quote, u })
  }
  const refused = await writeGuarded(commands, 'quotes', writes, version)
  if (dead.length === 0) return refused.size === 0
  // Guarded by the stamps, because a later post may have written a quote since.
  const { n } = await commands.removeQuotes(source._id, dead, deletedUpTo(source))
  return n === dead.length && refused.size === 0
}
