// Threads that a round was refused: what their next round knows, and when their numbered batches end.
import type { OpenThread, ThreadRound, WriterBatch, WriterToken } from '../documents.ts'
import type { WriteDeps } from './guarded-writes.ts'
import type { ReadThread } from './read-stored.ts'
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
  { commands }: WriteDeps,
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

/** Prepares a refused thread for another round. */
export function noteRefused(round: ThreadRound, open: readonly OpenThread[], toSum: boolean): void {
  const { work, stored } = round
  const isOpened = open.some((thread) => thread.round === round)
  // If a refused insert took effect after all, `meta.insertedBy` names the request, and the outcome is right.
  if (!isOpened && stored.source === undefined) return
  // A refused update may have taken effect and been overwritten since, so the outcomes are those of a later delivery.
  work.requests = work.requests.map((request) => ({ ...request, redelivered: true }))
  // The next read shows whether a refused opening left a token.
  work.mayHaveChanged ||= isOpened || !(toSum || round.quoteWrites.length > 0)
}
