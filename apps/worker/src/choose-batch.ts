// Chooses the requests of the next batch, if several have gathered.
import type { Lane } from '@sluice/queue'

/** The size of a request, and the bounds of a batch. A batch always contains at least one request. */
export interface BatchSize {
  /** The source and its quotes. */
  documents: number
  /** Characters of text: nearly all that is written. */
  characters: number
}

/** A request as a part of a batch. */
export interface BatchItem extends BatchSize {
  /** The request may have crashed a worker, so it is stored alone. */
  suspect: boolean
  /** Each lane has a share of every batch. */
  lane: Lane
}

/** The bulk lane's share of each batch while both lanes have requests. */
const BULK_SHARE = 0.25

/** Returns the indexes of the requests that form the next batch. */
export function chooseBatch(gathered: readonly BatchItem[], bounds: BatchSize): readonly number[] {
  const suspect = gathered.findIndex((request) => request.suspect)
  if (suspect !== -1) return [suspect]
  const all = gathered.map((request, place) => ({ request, place }))
  const interactive = all.filter(({ request }) => request.lane === 'interactive')
  const bulk = all.filter(({ request }) => request.lane === 'bulk')
  const forInteractive = bulk.length === 0 ? 1 : 1 - BULK_SHARE
  const forBulk = interactive.length === 0 ? 1 : BULK_SHARE
  return [...fill(interactive, bounds, forInteractive), ...fill(bulk, bounds, forBulk)]
}

/** Returns the indexes of the first requests that fit into this share of a batch, at least one. */
function fill(requests: readonly { request: BatchItem; place: number }[], bounds: BatchSize, share: number): number[] {
  const places: number[] = []
  const size = { documents: 0, characters: 0 }
  for (const { request, place } of requests) {
    size.documents += request.documents
    size.characters += request.characters
    const fits = size.documents <= bounds.documents * share && size.characters <= bounds.characters * share
    if (!fits && places.length > 0) break
    places.push(place)
  }
  return places
}
