import { createGroupCommit } from '@sluice/queue'
import { type StoredAnswer, type StoreRequest, StoreUnreachableError } from '@sluice/store'

/** One request that waits to be stored. */
export interface IngestRequest extends StoreRequest {
  /** It may be why a worker crashed, so it is stored alone and harms no other. */
  suspect: boolean
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
  onBatch: (size: number, seconds: number) => void,
): (request: IngestRequest) => Promise<Ingested> {
  const store = createGroupCommit(
    (batch: IngestRequest[]) => timed(batch, storeOrSplit(storeBatch), onBatch),
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

function storeOrSplit(storeBatch: StoreBatch): (batch: IngestRequest[]) => Promise<Fate[]> {
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
      if (error instanceof StoreUnreachableError) return batch.map(() => ({ away: true }))
      if (batch.length === 1) return [{ error }]
      const alone: Fate[] = []
      for (const request of batch) alone.push(...(await storeOrSplit(storeBatch)([request])))
      return alone
    }
  }
}

function takeBatch(bounds: BatchBounds): (gathered: readonly IngestRequest[]) => number {
  return (gathered) => {
    if (gathered[0]?.suspect) return 1
    let documents = 0
    let characters = 0
    let count = 0
    for (const { suspect, thread } of gathered) {
      documents += 1 + thread.quotes.length
      for (const quote of thread.quotes) characters += quote.text.length
      if (suspect || documents > bounds.documents || characters > bounds.characters) break
      count += 1
    }
    return count
  }
}
