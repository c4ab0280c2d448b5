import type { StoreCommands } from './commands.ts'
import type { SourceDocument } from './documents.ts'
import type { StoredThread } from './drafts.ts'
import { findByIds } from './guarded-write.ts'
import { isRepeat } from './repeats.ts'
import type { Runtime } from './runtime.ts'
import type { ThreadWork } from './thread-work.ts'
import type { Writer } from './writer.ts'

// Reads the threads of a batch, but for those that another process is writing.

/** The requests for a thread, and what is stored of it. */
export interface ReadThread {
  work: ThreadWork
  stored: StoredThread
}

/** A token this old, in ms, is not waited for: its writer is dead or very slow. A dead writer's job is delivered again within this time. */
const BUSY_MS = 10_000

/**
 * Reads the sources, then the watermarks of their open tokens, then the quotes that the requests name. The order matters: a source's version tells whether a quote may have changed since, and
 * a complete writer has written all of its quotes. Leaves out threads that
 * another process is writing: most writers are done in a few ms, and to wait costs less than a sum.
 */
export async function readThreads(
  { commands, runtime, writer }: { commands: StoreCommands; runtime: Runtime; writer: Writer },
  works: readonly ThreadWork[],
): Promise<ReadThread[]> {
  const ids = works.map((work) => work.id)
  const found = await findByIds(ids, (some) => commands.find('sources', some))
  const sources = new Map((await writer.withOpenTokens(found)).map((source) => [source._id, source]))
  const ready = works.filter((work) => !isBusy(runtime, work, sources.get(work.id)))
  const named = ready.flatMap((work) => (needsQuotes(sources.get(work.id), work) ? namedQuotes(work) : []))
  const quotes = await findByIds(named, (some) => commands.find('quotes', some))
  const quoteById = new Map(quotes.map((quote) => [quote._id, quote]))
  return ready.map((work) => {
    const source = sources.get(work.id)
    return { work, stored: source === undefined ? { quotes: quoteById } : { source, quotes: quoteById } }
  })
}

function isBusy(runtime: Runtime, { requests }: ThreadWork, source: SourceDocument | undefined): boolean {
  const tokens = source?.meta.writers
  if (tokens === undefined || requests.some(({ isOverdue }) => isOverdue)) return false
  // An earlier round or delivery of our own requests left its token: to wait would be in vain.
  const mine = new Set(requests.map(({ id }) => id))
  if (tokens.some(({ request }) => mine.has(request))) return false
  return tokens.every(({ since }) => runtime.now() - since.getTime() < BUSY_MS)
}

function needsQuotes(source: SourceDocument | undefined, { requests }: ThreadWork): boolean {
  return source !== undefined && !isRepeat(source, requests)
}

function namedQuotes({ requests }: ThreadWork): string[] {
  return [...new Set(requests.flatMap(({ quoteIds }) => quoteIds))]
}
