import type { Collections } from './collections.ts'
import { type Closed, contestOpen } from './contest-open.ts'
import type { SourceDocument, WriterBatch, WriterToken } from './documents.ts'
import type { Writer } from './writer.ts'

/**
 * Gives the sources without the tokens of batches that are closed; those that are not are contested.
 *
 * @param own the batch in hand, whose tokens stay and are not contested.
 */
export async function withLiveTokens(
  store: Collections,
  writer: Writer,
  sources: SourceDocument[],
  own: WriterBatch | undefined,
): Promise<SourceDocument[]> {
  const isOwn = (token: WriterBatch) => token.writer === own?.writer && token.batch === own.batch
  const endedHere = (token: WriterToken) => writer.wrote(token) && !isOwn(token) && !writer.closed.isClosed(token)
  // Where that is not possible now, the batch is contested as any other one.
  if (sources.some(({ meta }) => meta.writers?.some(endedHere))) await writer.closeAll().catch(() => {})
  await contestOpen(store, writer.closed, sources, isOwn)
  return sources.map((source) => withoutClosed(source, writer.closed))
}

function withoutClosed(source: SourceDocument, closed: Closed): SourceDocument {
  const { writers = [], ...meta } = source.meta
  const live = writers.filter((token) => !closed.isClosed(token))
  if (live.length === writers.length) return source
  return { ...source, meta: live.length === 0 ? meta : { ...meta, writers: live } }
}
