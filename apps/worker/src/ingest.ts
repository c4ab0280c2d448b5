import { createGroupCommit, type Lane, type TakeSome } from '@sluice/queue'
import { type StoredAnswer, type StoreRequest, StoreUnreachableError } from '@sluice/store'

/** One request that waits to be stored. */
export interface IngestRequest extends StoreRequest {
  /** It may be why a worker crashed, so it is stored alone and harms no other. */
  suspect: boolean
  /** Requests that somebody waits for go first. */
  lane: Lane
}

/** What became of a request: stored, or the store is away and nothing is known of it yet. */
export type Ingested = { answer: StoredAnswer } | { away: true }

type StoreBatch = (requests: readonly StoreRequest[]) => Promise<Map<string, StoredAnswer>>

/** What one batch may hold at most, though never less than one request. */
export interface BatchBounds {
  documents: number
  /** Characters of text, which is what their bytes come from. */
  characters: number
}

type Fate = Ingested | { error: unknown }

/**
 * Stores requests in batches: while one batch is being written the next one gathers. A request that can't be stored fails alone, by
 * throwing; where the store is away, none fails.
 */
export function createIngest(
  storeBatch: StoreBatch,
  bounds: BatchBounds,
  pingStore: () => Promise<void>,
  onBatch: (size: number, seconds: number) => void,
): (request: IngestRequest) => Promise<Ingested> {
  const store = createGroupCommit(
    (batch: IngestRequest[]) => timed(batch, storeOrSplit(storeBatch, pingStore), onBatch),
    takeBatch(bounds),
  )
  return async (request) => {
    const fate = await store(request)
    if ('error' in fate) throw fate.error
    return fate
  }
}

async function timed(
  batch: IngestRequest[],
  run: (batch: IngestRequest[]) => Promise<Fate[]>,
  onBatch: (size: number, seconds: number) => void,
): Promise<Fate[]> {
  const began = performance.now()
  const fates = await run(batch)
  onBatch(batch.length, (performance.now() - began) / 1000)
  return fates
}

function storeOrSplit(
  storeBatch: StoreBatch,
  pingStore: () => Promise<void>,
): (batch: IngestRequest[]) => Promise<Fate[]> {
  const storeAll = async (batch: IngestRequest[]): Promise<Fate[]> => {
    const answers = await storeBatch(batch)
    return batch.map((request) => {
      const answer = answers.get(request.id)
      return answer === undefined ? { error: new Error('the store gave no answer') } : { answer }
    })
  }
  return async (batch) => {
    try {
      return await storeAll(batch)
    } catch (error) {
      if (await isAway(error, pingStore)) return batch.map(() => ({ away: true }))
      if (batch.length === 1) return [{ error }]
      const alone: Fate[] = []
      for (const request of batch) alone.push(...(await storeOrSplit(storeBatch, pingStore)([request])))
      return alone
    }
  }
}

/** A store that answers a ping is not away: then what it did not answer in time is the request's own fault, and counts as a failed try. */
async function isAway(error: unknown, pingStore: () => Promise<void>): Promise<boolean> {
  if (!(error instanceof StoreUnreachableError)) return false
  if (!error.timedOut) return true
  try {
    await pingStore()
    return false
  } catch {
    return true
  }
}

/** Of a batch, those that nobody waits for get this share at least, however many others there are. */
const BULK_SHARE = 0.25

function takeBatch(bounds: BatchBounds): TakeSome<IngestRequest> {
  return (gathered) => {
    const suspect = gathered.findIndex((request) => request.suspect)
    if (suspect !== -1) return [suspect]
    const all = gathered.map((request, place) => ({ request, place }))
    const waiting = all.filter(({ request }) => request.lane === 'waiting')
    const bulk = all.filter(({ request }) => request.lane === 'bulk')
    const forWaiting = bulk.length === 0 ? 1 : 1 - BULK_SHARE
    const forBulk = waiting.length === 0 ? 1 : BULK_SHARE
    return [...fill(waiting, bounds, forWaiting), ...fill(bulk, bounds, forBulk)]
  }
}

/** The places of as many requests, from the front and at least one, as this share of a batch has room for. */
function fill(
  requests: readonly { request: IngestRequest; place: number }[],
  bounds: BatchBounds,
  share: number,
): number[] {
  const places: number[] = []
  let documents = 0
  let characters = 0
  for (const { request, place } of requests) {
    documents += 1 + request.thread.quotes.length
    for (const quote of request.thread.quotes) characters += quote.text.length
    const isFull = documents > bounds.documents * share || characters > bounds.characters * share
    if (isFull && places.length > 0) break
    places.push(place)
  }
  return places
}
