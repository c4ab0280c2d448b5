// Removes the deleted quotes of sources, and sums the others. For correctness, it sets a new epoch
// before the sum: a writer whose quotes the sum missed finds the new epoch, and recounts. The
// reservation, its renewals and the wait for other writers only help sums to succeed.
import type { ObjectId } from 'mongodb'
import { deletedUpTo, endedMark, seenQuote } from '../deletions.ts'
import {
  type GuardedWrite,
  lastPositionOf,
  type OpenThread,
  type QuoteWithoutText,
  type SourceOrTombstone,
  type WriterToken,
} from '../documents.ts'
import { compareIds } from '../ids.ts'
import { REPLACED } from '../merge/merge.ts'
import {
  chunksOf,
  IDS_PER_QUERY,
  type QuoteTotals,
  type StoreCommands,
  sendAll,
} from '../mongodb/commands.ts'
import {
  planMarks,
  totalsAfter,
  type WriteDeps,
  writeGuarded,
  writeQuotes,
} from './guarded-writes.ts'
import {
  ageOf,
  type createIsExcluded,
  type IsToken,
  isMine,
  tokensAfterSum,
  type Watermarks,
} from './tokens.ts'

export interface SumDeps extends WriteDeps {
  watermarks: Watermarks
  isExcluded: ReturnType<typeof createIsExcluded>
}

/** Bounds the time that one sum takes. */
export const SOURCES_AT_ONCE = 100
/** Upper bound of the random pause before a refused recount is repeated. */
const BACK_OFF_MS = 50
/**
 * The pause between two renewals. Other processes ignore a reservation that was not renewed for a
 * second.
 */
const RENEW_MS = 250
/**
 * A sum waits for writers for at most this time, and only if their tokens are younger than this:
 * writers of older tokens may be dead.
 */
const USUAL_BATCH_MS = 1_000
const POLL_MS = 10
export const NO_QUOTES: QuoteTotals = { wordCount: 0, quoteCount: 0 }

/**
 * Sums the quotes of these sources and writes the totals, again until no write is refused. Removes
 * the tokens that `isRemovable` selects: all of their quotes must be written.
 */
export async function recount(
  deps: SumDeps,
  ids: readonly string[],
  isRemovable: IsToken,
): Promise<void> {
  const { runtime } = deps
  const writer = runtime.newId().toHexString()
  for (let left of chunksOf(ids, SOURCES_AT_ONCE)) {
    while (left.length > 0) {
      left = await recountOnce(deps, left, writer, isRemovable)
      if (left.length > 0) await runtime.delay(runtime.random() * BACK_OFF_MS)
    }
  }
}

/** Recounts these sources once. Returns the ids of sources that were refused or excluded. */
async function recountOnce(
  deps: SumDeps,
  ids: readonly string[],
  writer: string,
  isRemovable: IsToken,
) {
  const { commands, runtime, isExcluded } = deps
  const token = {
    request: '',
    writer,
    batch: 1,
    since: new Date(runtime.now()),
    excludes: runtime.newId(),
  }
  const isOwn = (one: WriterToken) => one.writer === writer || isRemovable(one)
  const version = runtime.newId()
  const all = await commands.find('sources', ids)
  // A document that Sluice did not write has failed its requests, and has no quotes of Sluice.
  const found = all.filter(({ meta }) => meta !== undefined)
  const mine = found.filter((source) => !isExcluded(source, isOwn))
  const reservations = mine.map((source) => {
    const others = (source.meta.tokens ?? []).filter((one) => one.writer !== writer)
    return planMarks(source, { version, tokens: [...others, token] })
  })
  const reserved = await writeSources(commands, reservations, version)
  const summed = await sumSources(deps, reserved, isOwn, async (sources) =>
    sources.map(withoutDigest),
  )
  const done = new Set(summed.map(({ _id }) => _id))
  return found.map(({ _id }) => _id).filter((id) => !done.has(id))
}

/**
 * Removes the digest, because the sum may count quotes that the digest's request did not contain.
 */
function withoutDigest(stored: SourceOrTombstone): Commit {
  const { digest: _, ...meta } = stored.meta
  return { stored, document: { ...stored, meta } }
}

/**
 * Writes the quotes of reserved sources, and sums. Returns the threads that were not refused, with
 * their sources as stored.
 */
export async function writeAndSum(
  deps: SumDeps,
  open: readonly OpenThread[],
  openedAt: number,
): Promise<OpenThread[]> {
  const reserved = open.map(({ source }) => source)
  const summed = await sumSources(deps, reserved, isOfOneOf(open), async (sources) => {
    const written = await writeQuotes(deps, stillOpen(open, sources), openedAt)
    return written.map(({ plan, source }) => ({ stored: source, document: plan.source.document }))
  })
  return stillOpen(open, summed)
}

/** Returns the threads that have one of these sources, each with the source as it is stored now. */
function stillOpen(
  open: readonly OpenThread[],
  sources: readonly SourceOrTombstone[],
): OpenThread[] {
  const stored = new Map(sources.map((source) => [source._id, source]))
  return open.flatMap((thread) => {
    const source = stored.get(thread.source._id)
    return source === undefined ? [] : [{ ...thread, source }]
  })
}

/**
 * Writes the quotes, then commits the reserved sources without a sum. Returns the threads that were
 * not refused.
 */
export async function writeAndCommit(
  deps: WriteDeps,
  open: readonly OpenThread[],
  openedAt: number,
  onLastWrite: () => void,
): Promise<OpenThread[]> {
  const written = await writeQuotes(deps, open, openedAt)
  const toCommit = written.filter(({ isFinal }) => !isFinal)
  const commits = toCommit.map(({ plan, source }) => {
    return {
      stored: source,
      document: { ...plan.source.document, ...totalsAfter(source, plan.quoteWrites) },
    }
  })
  const isOwn = isOfOneOf(toCommit)
  const committing = commitSources(deps, commits, (tokens) =>
    tokens.filter((token) => !isOwn(token)),
  )
  onLastWrite()
  return [...written.filter(({ isFinal }) => isFinal), ...stillOpen(toCommit, await committing)]
}

function isOfOneOf(threads: readonly OpenThread[]): IsToken {
  return (token) => threads.some(({ work }) => isMine(work, token))
}

/**
 * Waits for the writers of open tokens, sets a new epoch, removes deleted quotes, writes quotes,
 * sums, and commits the totals. Removes the tokens that `isOwn` selects: all of their quotes are
 * written before the sum begins.
 *
 * @param writeQuotesOf writes the quotes of these sources. Returns what to commit for each source
 * whose quotes were not refused. The sum then replaces the totals.
 */
export async function sumSources(
  deps: SumDeps,
  reserved: readonly SourceOrTombstone[],
  isOwn: IsToken,
  writeQuotesOf: (sources: readonly SourceOrTombstone[]) => Promise<Commit[]>,
): Promise<SourceOrTombstone[]> {
  let sources = reserved
  let isDone = false
  void renew(deps, () => (isDone ? undefined : sources), isOwn).catch(() => {})
  try {
    const others = sources.flatMap(({ meta }) =>
      (meta.tokens ?? []).filter((token) => !isOwn(token)),
    )
    await awaitWriters(deps, others)
    sources = await setEpoch(deps, sources)
    const written = await writeQuotesOf(await removeDeleted(deps, sources))
    const marked = sources.filter(({ meta }) => meta.deletion)
    const ids = written.map(({ stored }) => stored._id)
    const found = await deps.commands.sumQuotes(ids, { marked })
    const sums = new Map(found.map((sum) => [sum._id, sum]))
    const commits = written.map(({ stored, document }) => {
      return { stored, document: withTotals(document, sums.get(stored._id) ?? NO_QUOTES) }
    })
    const ended = new Set(sources.map(({ meta }) => meta.deletion?.request))
    const isEnded: IsToken = (token) => isOwn(token) || ended.has(token.request)
    return await commitSources(deps, commits, (tokens) =>
      tokensAfterSum(deps.runtime, tokens, isEnded),
    )
  } finally {
    isDone = true
  }
}

/** Replaces the totals. The deletion of the source, if it has one, has then ended. */
function withTotals(document: SourceOrTombstone, totals: QuoteTotals): SourceOrTombstone {
  const { deletion } = document.meta
  if (deletion?.before === undefined) return { ...document, ...totals }
  const meta = { ...document.meta, deletion: endedMark(deletion, totals.quoteCount) }
  return { ...document, ...totals, meta }
}

/** Renews these reservations until there are none or a renewal fails. */
async function renew(
  { commands, runtime }: WriteDeps,
  reserved: () => readonly SourceOrTombstone[] | undefined,
  isOwn: IsToken,
): Promise<void> {
  for (;;) {
    await runtime.delay(RENEW_MS)
    const sources = reserved()
    if (sources === undefined) return
    const excludes = runtime.newId()
    const inOrder = sources.toSorted(compareIds)
    const statements = inOrder.map(({ _id, meta: { version, tokens = [] } }) => {
      const renewed = tokens.map((token) =>
        isOwn(token) && token.excludes ? { ...token, excludes } : token,
      )
      // The version stays, because nothing that a guard protects has changed.
      return { q: { _id, 'meta.version': version }, u: { $set: { 'meta.tokens': renewed } } }
    })
    if (statements.length > 0) await commands.update('sources', statements)
  }
}

/**
 * Waits until these tokens' batches are settled, or the tokens are too old to wait for. If a batch
 * settles before the sum, its writer does not need to recount.
 */
async function awaitWriters(
  { runtime, watermarks }: SumDeps,
  tokens: readonly WriterToken[],
): Promise<void> {
  const began = runtime.monotonic()
  for (;;) {
    await watermarks.read(tokens)
    const isWorthWaiting = tokens.some(
      (token) => !watermarks.covers(token) && ageOf(runtime, token) < USUAL_BATCH_MS,
    )
    // Bounds the wait, because another machine's clock may be ahead, and its tokens then seem
    // young.
    if (!isWorthWaiting || runtime.monotonic() - began > USUAL_BATCH_MS) return
    await runtime.delay(POLL_MS)
  }
}

/**
 * Sets a new epoch, after which the sum may begin. Returns the sources that were not refused, as
 * they are stored.
 */
async function setEpoch(
  { commands, runtime, watermarks }: SumDeps,
  reserved: readonly SourceOrTombstone[],
) {
  const epoch = runtime.newId()
  const writes = reserved.map((source) => planMarks(source, { version: epoch, epoch }))
  return (await writeSources(commands, writes, epoch)).map(watermarks.withoutSettledTokens)
}

/** A reserved source, and the document that is to replace it. */
type Commit = Record<'stored' | 'document', SourceOrTombstone>

/**
 * Commits reserved sources, with the tokens that `tokensAfter` keeps. Returns the sources that were
 * not refused.
 */
async function commitSources(
  { commands, runtime }: WriteDeps,
  commits: readonly Commit[],
  tokensAfter: (tokens: readonly WriterToken[]) => WriterToken[],
): Promise<SourceOrTombstone[]> {
  const version = runtime.newId()
  const writes = commits.map(({ stored, document }) => {
    const { epoch, tokens: open = [] } = stored.meta
    const { tokens: _, ...kept } = document.meta
    const tokens = tokensAfter(open)
    const meta = { ...kept, version, ...(epoch && { epoch }), ...(tokens.length > 0 && { tokens }) }
    return { stored, document: { ...document, meta } }
  })
  return writeSources(commands, writes, version)
}

async function writeSources(
  commands: StoreCommands,
  writes: GuardedWrite<SourceOrTombstone>[],
  version: ObjectId,
) {
  const refused = await writeGuarded(commands, 'sources', writes, version)
  return writes.flatMap(({ document }) => (refused.has(document._id) ? [] : [document]))
}

/** Small, because posts' commands may wait for commands that remove quotes. */
const REMOVED_AT_ONCE = 2
/**
 * Between two commands, the removal rests this many times as long as the last one took. Some
 * servers run one command at a time, and other tenants' posts keep at least half of their rate.
 */
const RESTS = 3
/**
 * A thread may have a million quotes. After this time, a call begins no further page, so that the
 * other deletions of its batch do not wait for long: the next call continues.
 */
const REMOVE_MS = 1_000

/**
 * Removes what is deleted of the quotes of sources. Returns the sources that have nothing left to
 * remove. Each later sum does so again, because a writer that opened the source before the deletion
 * may store quotes late.
 */
async function removeDeleted(
  deps: WriteDeps,
  sources: readonly SourceOrTombstone[],
): Promise<SourceOrTombstone[]> {
  const left = new Set<string>()
  const marked = sources.filter(({ meta }) => meta.deletion)
  const until = deps.runtime.monotonic() + REMOVE_MS
  await sendAll(chunksOf(marked, 1), REMOVED_AT_ONCE, async (some) => {
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
  const { runtime } = deps
  let began = runtime.monotonic()
  let isFirst = true
  for (let isDone = false; !isDone; ) {
    isDone = true
    for await (const page of deletedQuotes(deps, source)) {
      if (!isFirst && runtime.monotonic() > until) return false
      for (const some of chunksOf(page, IDS_PER_QUERY)) {
        if (!isFirst) {
          await runtime.delay((runtime.monotonic() - began) * RESTS)
          began = runtime.monotonic()
        }
        isFirst = false
        if (!(await removeSome(deps, source, some))) isDone = false
      }
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
  // Large, because SecantusDB reads all quotes of a source for each page.
  const limit = 4 * commands.writesPerCommand
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
