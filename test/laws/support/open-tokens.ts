import type { SourceDocument, WriterDocument } from '@sluice/store'
import type { Db } from 'mongodb'

/** The requests whose tokens in the sources are open: no watermark covers their batches. */
export async function openTokens(db: Db, ...sources: SourceDocument[]): Promise<string[]> {
  const tokens = sources.flatMap(({ meta }) => meta.tokens ?? [])
  const names = [...new Set(tokens.map(({ writer }) => writer))]
  const writers = await db
    .collection<WriterDocument>('writers')
    .find({ _id: { $in: names } })
    .toArray()
  const watermarks = new Map(writers.map(({ _id, watermark }) => [_id, watermark]))
  return tokens
    .filter(({ writer, batch }) => batch > (watermarks.get(writer) ?? 0))
    .map(({ request }) => request)
}
