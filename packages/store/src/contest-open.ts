import { ObjectId } from 'mongodb'
import type { Collections } from './collections.ts'
import type { SourceDocument, WriterBatch, WriterDocument, WriterToken } from './documents.ts'
import { type GuardedWrite, writeGuarded } from './guarded-write.ts'

type Contested = WriterDocument['contested'][number] & { writer: string }

/** How far each writer has got, as far as is known. */
export interface Closed {
  isClosed(batch: WriterBatch): boolean
  /** Learns from a writer's document how far it has got. */
  learn(document: Pick<WriterDocument, '_id' | 'closed'>): void
}

/** Knows nothing yet: no batch counts as closed. */
export function createClosed(): Closed {
  const upTo = new Map<string, number>()
  return {
    isClosed: ({ writer, batch }) => (upTo.get(writer) ?? 0) >= batch,
    learn: ({ _id, closed }) => void upTo.set(_id, Math.max(closed, upTo.get(_id) ?? 0)),
  }
}

/**
 * Contests the batches that are not closed and whose tokens stand in these sources: who writes such a batch will sum the sources before it closes the batch, as
 * whoever sums them now may do so before all of the batch is there. To be called before a sum is written.
 */
export async function contestOpen(
  store: Collections,
  closed: Closed,
  sources: Pick<SourceDocument, '_id' | 'meta'>[],
  isOwn: (token: WriterToken) => boolean,
): Promise<void> {
  let doubtful = sources.flatMap(({ _id, meta: { writers = [] } }) =>
    writers.filter((token) => !isOwn(token)).map((token) => ({ ...token, source: _id })),
  )
  while (true) {
    doubtful = doubtful.filter((token) => !closed.isClosed(token))
    if (doubtful.length === 0) return
    const writers = await learnOf(store, closed, doubtful)
    doubtful = doubtful.filter((token) => !closed.isClosed(token))
    const refused = await contest(store, writers, doubtful)
    doubtful = doubtful.filter((token) => refused.has(token.writer))
  }
}

/** Learns how far the writers of these tokens have got, and gives their documents. */
export async function learnOf(
  { writers }: Collections,
  closed: Closed,
  tokens: readonly WriterBatch[],
): Promise<WriterDocument[]> {
  const names = [...new Set(tokens.map(({ writer }) => writer))]
  const documents = names.length === 0 ? [] : await writers.find({ _id: { $in: names } }).toArray()
  documents.forEach(closed.learn)
  return documents
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
