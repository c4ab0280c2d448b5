// Reads the threads of a batch, except those that another process sums.
import type { Runtime, StoreCommands } from './commands.ts'
import type { SourceDocument } from './documents.ts'
import { findByIds } from './mongodb.ts'
import { readQuotes } from './read-quotes.ts'
import { isRepeat } from './repeats.ts'
import type { StoredThread, ThreadWork } from './thread.ts'
import { isExcluded, isMine } from './tokens.ts'
import type { Writer } from './writer.ts'

/** The requests for a thread, and its stored documents. */
export interface ReadThread {
  work: ThreadWork
  stored: StoredThread
}

/**
 * Reads the sources, then the watermarks of their open tokens, then the quotes that the requests name. The order matters: a source's version shows whether a quote may
 * have changed since, and a settled batch has written all of its quotes. Omits threads whose quotes another process sums.
 */
export async function readThreads(
  { commands, runtime, writer }: { commands: StoreCommands; runtime: Runtime; writer: Writer },
  works: readonly ThreadWork[],
): Promise<ReadThread[]> {
  const ids = works.map((work) => work.id)
  const found = await findByIds(ids, (some) => commands.find('sources', some))
  const sources = new Map((await writer.withoutSettledTokens(found)).map((source) => [source._id, source]))
  const isExcludedFrom = (work: ThreadWork, source?: SourceDocument) =>
    source !== undefined && isExcluded(runtime, source, (token) => isMine(work, token))
  const ready = works.filter((work) => !isExcludedFrom(work, sources.get(work.id)))
  const naming = ready.flatMap((work) => {
    const source = sources.get(work.id)
    return source === undefined || isRepeat(source, work.requests) ? [] : [{ work, source }]
  })
  const quotes = await readQuotes(commands, naming)
  return ready.map((work) => {
    const source = sources.get(work.id)
    return { work, stored: source === undefined ? { quotes } : { source, quotes } }
  })
}
