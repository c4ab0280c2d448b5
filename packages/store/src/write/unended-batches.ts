// The numbered batches, one for each round, of which a thread was refused: they end as soon as no token of theirs is left.
import type { WriterBatch, WriterToken } from '../documents.ts'
import type { ReadThread } from './read-stored.ts'
import type { RoundDeps } from './round.ts'
import type { OpenedSource } from './writer.ts'

/** A batch that has not ended: the source of a refused thread may have a token. */
export interface UnendedBatch {
  batch: WriterBatch
  opened: readonly OpenedSource[]
  /** The refused threads. */
  refused: Set<string>
}

/**
 * Removes the threads from the batches whose tokens their sources do not have. If a refused update took effect and was
 * overwritten, its token is there. A majority must have the source without the token: another write that removed the
 * token can be rolled back.
 */
export async function dropUnopened(
  { commands }: Pick<RoundDeps, 'commands'>,
  unended: readonly UnendedBatch[],
  read: readonly ReadThread[],
): Promise<void> {
  const works = read.map(({ work }) => work).filter(({ id }) => unended.some(({ refused }) => refused.has(id)))
  const ids = works.map(({ id }) => id)
  const found = await commands.find('sources', ids, 'majority')
  const tokens = new Map(found.map(({ _id, meta }) => [_id, meta.tokens ?? []]))
  for (const { batch, refused } of unended) {
    const isOwn = (token: WriterToken) => token.writer === batch.writer && token.batch === batch.batch
    for (const work of works.filter(({ id }) => refused.has(id))) {
      if (tokens.get(work.id)?.some(isOwn)) work.mayHaveChanged = true
      else refused.delete(work.id)
    }
  }
}
