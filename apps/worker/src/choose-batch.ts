// Chooses the requests of the next batch, if several have gathered.
import { LANES, type Lane } from '@sluice/queue'
import type { StoreRequest } from '@sluice/store'

/** The size of a request, and the bounds of a batch. A batch always contains at least one request. */
export interface BatchSize {
  /** The source and its quotes. */
  documents: number
  /** Characters of text: nearly all that is written. */
  characters: number
}

/** A request as a part of a batch. */
export interface IngestRequest extends StoreRequest, BatchSize {
  /** The request may have crashed a worker, so it is stored alone. */
  suspect: boolean
  /** Each lane has a share of every batch. */
  lane: Lane
  /** The span of its job. */
  trace?: string
}

/** The bulk lane's share of each batch while both lanes have requests. */
const BULK_SHARE = 0.25

/** Returns the indexes of the requests that form the next batch. */
export function chooseBatch(gathered: readonly IngestRequest[], bounds: BatchSize): readonly number[] {
  const suspect = gathered.findIndex((request) => request.suspect)
  if (suspect !== -1) return [suspect]
  const has = (lane: Lane) => gathered.some((request) => request.lane === lane)
  const shares = { interactive: has('bulk') ? 1 - BULK_SHARE : 1, bulk: has('interactive') ? BULK_SHARE : 1 }
  return LANES.flatMap((lane) => fill(gathered, bounds, lane, shares[lane]))
}

/** Returns the indexes of the first requests of a lane that fit into this share of a batch, at least one. */
function fill(gathered: readonly IngestRequest[], bounds: BatchSize, lane: Lane, share: number): number[] {
  const places: number[] = []
  const size = { documents: 0, characters: 0 }
  for (const [place, request] of gathered.entries()) {
    if (request.lane !== lane) continue
    size.documents += request.documents
    size.characters += request.characters
    const fits = size.documents <= bounds.documents * share && size.characters <= bounds.characters * share
    if (!fits && places.length > 0) break
    places.push(place)
  }
  return places
}
