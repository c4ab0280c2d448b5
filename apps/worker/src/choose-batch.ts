// Chooses the requests of the next batch from those that have gathered.
import type { Lane } from '@sluice/queue'
import type { StoreRequest } from '@sluice/store'

/** The size of a request, or the bounds of a batch. A batch always contains at least one request. */
export interface BatchSize {
  /** The source and its quotes. */
  documents: number
  /** Characters of text: nearly all that is written. */
  characters: number
}

/** A request as a part of a batch. */
export interface IngestRequest extends StoreRequest, BatchSize {
  /**
   * Present if the request may have caused a failure or a crash. It then shares a batch only with other such requests,
   * at most this many in the batch. After a failure, the number becomes half the size of the failed batch, so that few
   * tries find the cause.
   */
  apart?: number
  /** Lanes share no batch. */
  lane: Lane
  /** The span of its job. */
  trace?: string
}

/** Returns the indexes of the first requests that fit into a batch, at least one. */
export function chooseBatch(gathered: readonly IngestRequest[], bounds: BatchSize): readonly number[] {
  const size = { documents: 0, characters: 0 }
  let most = gathered.length
  const end = gathered.findIndex(({ documents, characters, apart = most }, place) => {
    size.documents += documents
    size.characters += characters
    most = Math.min(most, apart)
    const fits = size.documents <= bounds.documents && size.characters <= bounds.characters && place < most
    return place > 0 && !fits
  })
  return [...gathered.keys()].slice(0, end === -1 ? gathered.length : end)
}
