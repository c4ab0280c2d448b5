// Removes what is deleted of the quotes of sources, within a sum. Each later sum does so again,
// because a writer that opened the source before the deletion may store quotes late.
import type { GuardedWrite, QuoteWithoutText, SourceOrTombstone } from '../documents.ts'
import { compareIds } from '../ids.ts'
import { REPLACED } from '../merge/merge.ts'
import { chunksOf, sendAll } from '../mongodb/commands.ts'
import { deletedUpTo, seenQuote } from '../seen-quotes.ts'
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
  const marked = sources.filter(({ meta }) => meta.deletion)
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
  for (let isDone = false; !isDone; ) {
    isDone = true
    for await (const page of deletedQuotes(deps, source)) {
      if (!(await removeSome(deps, source, page))) isDone = false
      if (deps.runtime.monotonic() > until) return false
    }
  }
  return true
}

/** Reads the quotes of a source of which something may be deleted, in pages with at least one. */
async function* deletedQuotes(
  { commands }: WriteDeps,
  source: SourceOrTombstone,
): AsyncGenerator<QuoteWithoutText[]> {
  const { _id } = source
  const limit = commands.writesPerCommand
  const names = Object.keys(source.meta.deletion?.ofQuotes ?? {}).sort()
  for (const some of chunksOf(names, limit)) {
    const found = await commands.findWithoutTexts(some.map((name) => _id + name))
    const isOlder = (quote: QuoteWithoutText) =>
      quote.position <= lastPositionOf(deletedUpTo(source, quote._id))
    const page = found.filter(isOlder).sort(compareIds)
    if (page.length > 0) yield page
  }
  const upTo = lastPositionOf(deletedUpTo(source))
  for (let page: QuoteWithoutText[] = [], isLast = deletedUpTo(source) === 0; !isLast; ) {
    page = await commands.findQuotesOf(_id, { after: page.at(-1)?._id ?? _id, limit, upTo })
    isLast = page.length < limit
    if (page.length > 0) yield page
  }
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
  let removed = 0
  // Guarded by the stamps, because a later post may have written a quote since.
  for (const [upTo, ids] of Map.groupBy(dead, (id) => deletedUpTo(source, id)))
    removed += (await commands.removeQuotes(source._id, ids, upTo)).n
  return removed === dead.length && refused.size === 0
}
