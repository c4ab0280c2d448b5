import { ObjectId } from 'mongodb'
import type { Collections } from './collections.ts'
import type { SourceDocument, WriterDocument } from './documents.ts'
import { type GuardedWrite, writeGuarded } from './guarded-write.ts'
import type { Writer, WriterBatch } from './writer.ts'

type Contested = WriterDocument['contested'][number] & { writer: string }

/**
 * Gives the sources without the tokens of batches that are closed. A batch that is not is contested: whoever writes it will sum these sources before it
 * closes the batch, as what is merged into them now may be summed before all of the batch is there.
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
  let doubtful = sources.flatMap(({ _id, meta: { writers = [] } }) =>
    writers.filter((token) => !isOwn(token)).map((token) => ({ ...token, source: _id })),
  )
  if (doubtful.some((token) => !writer.isClosed(token))) await writer.closeAll()
  while (true) {
    doubtful = doubtful.filter((token) => !writer.isClosed(token))
    if (doubtful.length === 0) break
    const writers = await writersOf(store, doubtful)
    writers.forEach(writer.learn)
    doubtful = doubtful.filter((token) => !writer.isClosed(token))
    const refused = await contest(store, writers, doubtful)
    doubtful = doubtful.filter((token) => refused.has(token.writer))
  }
  return sources.map((source) => withoutClosed(source, writer))
}

function writersOf({ writers }: Collections, tokens: Contested[]): Promise<WriterDocument[]> {
  return writers.find({ _id: { $in: [...new Set(tokens.map((token) => token.writer))] } }).toArray()
}

/** Notes these sources with their writers, and gives the writers that have moved on since they were read. */
async function contest(store: Collections, writers: WriterDocument[], tokens: Contested[]): Promise<Set<string>> {
  const version = new ObjectId()
  const writes = writers.flatMap((document): GuardedWrite[] => {
    const before = new Set(document.contested.map(({ batch, source }) => `${batch} ${source}`))
    const added = tokens
      .filter(({ writer, batch, source }) => writer === document._id && !before.has(`${batch} ${source}`))
      .map(({ batch, source }) => ({ batch, source }))
    if (added.length === 0) return []
    const $set = { contested: [...document.contested, ...added], 'meta.version': version }
    return [{ id: document._id, read: document.meta.version, update: { $set } }]
  })
  return writes.length === 0 ? new Set() : writeGuarded(store.guardedWriters, writes, version)
}

function withoutClosed(source: SourceDocument, writer: Writer): SourceDocument {
  const { writers = [], ...meta } = source.meta
  const live = writers.filter((token) => !writer.isClosed(token))
  if (live.length === writers.length) return source
  return { ...source, meta: live.length === 0 ? meta : { ...meta, writers: live } }
}
