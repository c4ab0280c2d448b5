import type { StoreCommands } from './commands.ts'
import type { SourceDocument } from './documents.ts'
import type { StoredThread } from './drafts.ts'
import { findByIds } from './guarded-write.ts'
import { isRepeat } from './repeats.ts'
import type { Runtime } from './runtime.ts'
import type { ThreadWork } from './thread-work.ts'
import type { Writer } from './writer.ts'

// Reads the threads of a batch, and tells the ones that another process is writing.

/** The requests for a thread, and what is stored of it. */
export interface ReadThread {
  work: ThreadWork
  stored: StoredThread
}

/**
 * A thread that another process is writing is left to it for so long, in ms: most writers are done in a few, and waiting costs less than a sum. A dead writer's
 * job is delivered again within this time.
 */
export const BUSY_MS = 10_000

/**
 * Reads the sources, then the watermarks of their open tokens, then the quotes that the requests name. The order matters: a source's version tells whether a quote may have changed since, and
 * a complete writer has written all of its quotes. Threads that another process is writing are `busy`.
 */
export async function readThreads(
  { commands, runtime, writer }: { commands: StoreCommands; runtime: Runtime; writer: Writer },
  works: readonly ThreadWork[],
): Promise<{ ready: ReadThread[]; busy: ThreadWork[] }> {
  const ids = works.map((work) => work.id)
  const found = await findByIds(ids, (some) => commands.find('sources', some))
  const sources = new Map((await writer.withOpenTokens(found)).map((source) => [source._id, source]))
  const busy = works.filter((work) => isBusy(runtime, work, sources.get(work.id)))
  const ready = works.filter((work) => !busy.includes(work))
  const named = ready.flatMap((work) => (needsQuotes(sources.get(work.id), work) ? namedQuotes(work) : []))
  const quotes = await findByIds(named, (some) => commands.find('quotes', some))
  const quoteById = new Map(quotes.map((quote) => [quote._id, quote]))
  const read = ready.map((work): ReadThread => {
    const source = sources.get(work.id)
    return { work, stored: source === undefined ? { quotes: quoteById } : { source, quotes: quoteById } }
  })
  return { ready: read, busy }
}

/** Where one of the tokens is of our own requests, an earlier round or delivery left it, and waiting would be in vain. */
function isBusy(runtime: Runtime, work: ThreadWork, source: SourceDocument | undefined): boolean {
  const tokens = source?.meta.writers
  if (tokens === undefined) return false
  const mine = new Set(work.requests.map(({ id }) => id))
  if (tokens.some(({ request }) => mine.has(request))) return false
  work.busySince ??= runtime.monotonic()
  const isYoung = tokens.every(({ since }) => runtime.now() - since.getTime() < BUSY_MS)
  return isYoung && runtime.monotonic() - work.busySince < BUSY_MS
}

function needsQuotes(source: SourceDocument | undefined, { requests }: ThreadWork): boolean {
  return source !== undefined && !isRepeat(source, requests)
}

function namedQuotes({ requests }: ThreadWork): string[] {
  return [...new Set(requests.flatMap(({ quoteIds }) => quoteIds))]
}
