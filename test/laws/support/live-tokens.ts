import type { SourceDocument, WriterDocument } from '@sluice/store'
import type { Collection } from 'mongodb'

/** The requests that have named themselves in a source and of which nobody can tell that they are done. */
export async function liveTokens(
  writers: Collection<WriterDocument>,
  { meta: { writers: tokens = [] } }: SourceDocument,
): Promise<string[]> {
  const known = await writers.find({ _id: { $in: tokens.map(({ writer }) => writer) } }).toArray()
  const closed = new Map(known.map((writer) => [writer._id, writer.closed]))
  return tokens.filter(({ writer, batch }) => batch > (closed.get(writer) ?? 0)).map(({ request }) => request)
}
