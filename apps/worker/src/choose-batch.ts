// Chooses the requests of a batch. After a batch failed, decides which of its requests failed and which are tried
// again.
import { asError, type Lane } from '@sluice/queue'
import { refusalOf, CommandFailedError, type StoreRequest } from '@sluice/store'

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
   * Present if the request may have caused a failure or a crash. The request then shares a batch only with other such
   * requests. The number bounds the requests of that batch: after a failure, to half of the failed batch, so that few
   * attempts find the cause.
   */
  apart?: number
  /** Lanes share no batch. */
  lane: Lane
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

/** The most requests of a batch that is tried again: 380 partly written threads delayed other callers for 0.5 s. */
const MAX_APART = 50

/** Returns what becomes of the requests of a failed batch: refused ones have failed, all others are tried apart. */
export function outcomesOfFailed(batch: readonly IngestRequest[], error: unknown) {
  // If a whole command failed, the store may have been unavailable for a moment, so a single request is tried once more.
  const isTriedAgain = error instanceof CommandFailedError && batch[0]?.apart === undefined
  const reason = asError(error instanceof CommandFailedError ? error.cause : error)
  if (batch.length === 1 && !isTriedAgain) return [{ error: reason }]
  const refusals = batch.map((request) => refusalOf(error, request))
  // Of several requests for a refused thread, only some may be at fault.
  const isOnly = (refusal: Error) => refusals.indexOf(refusal) === refusals.lastIndexOf(refusal)
  const apart = { apart: Math.min(Math.ceil(batch.length / 2), MAX_APART) }
  return refusals.map((refusal) => (refusal !== undefined && isOnly(refusal) ? { error: refusal } : apart))
}
