import { setTimeout as delay } from 'node:timers/promises'
import { createGroupCommit, type Lane, type TakeSome } from '@sluice/queue'
import { type StoredAnswer, type StoreRequest, StoreUnreachableError } from '@sluice/store'
import { createPending } from './pending.ts'

/** One request that waits to be stored. */
export interface IngestRequest extends StoreRequest {
  /** It may be why a worker crashed, so it is stored alone and harms no other. */
  suspect: boolean
  /** Requests that somebody waits for go first. */
  lane: Lane
}

/** What became of a request: stored, or the store is away and nothing is known of it yet. */
export type Ingested = { answer: StoredAnswer } | { away: true }

/** Stores a batch; `onCommit` is called when all of it is sent but for its last write. */
type StoreBatch = (requests: readonly StoreRequest[], onCommit: () => void) => Promise<Map<string, StoredAnswer>>

/** What one batch may hold at most, though never less than one request. */
export interface BatchBounds {
  documents: number
  /** Characters of text, which is what their bytes come from. */
  characters: number
}

export interface Ingest {
  /** Stores a request together with others. One that can't be stored fails alone, by throwing; where the store is away, none fails. */
  ingest(request: IngestRequest): Promise<Ingested>
  /**
   * Resolves when what is taken of this lane now would soon be written: while one batch is being written the next one gathers in the queue, where every
   * worker can have it, and is fetched during the batch's last write.
   */
  ready(lane: Lane): Promise<void>
}

type Fate = Ingested | { error: unknown }

/** After a batch of more than one request so long passes before the next one is taken, in ms: no lone caller waits for it. */
const PACE_MS = 4

/** A request of more than this share of a batch is stored beside the others, which need not wait for it. */
const LARGE_SHARE = 1 / 8

/** Stores requests in batches. */
export function createIngest(
  storeBatch: StoreBatch,
  bounds: BatchBounds,
  pingStore: () => Promise<void>,
  onBatch: (size: number, seconds: number) => void,
): Ingest {
  const unwritten = { waiting: createPending(), bulk: createPending() }
  let last = { size: 0, at: 0 }
  /** A batch costs the same whether it is small or large: while jobs come thick and fast, each waits for some company. */
  async function pace(): Promise<void> {
    const ms = last.at + PACE_MS - performance.now()
    if (last.size > 1 && ms > 0) await delay(ms)
  }
  const open = (onCommit: (batch: IngestRequest[]) => void) =>
    createGroupCommit(
      (batch: IngestRequest[]) => timed(batch, storeOrSplit(storeBatch, pingStore, onCommit), onBatch),
      takeBatch(bounds),
    )
  const storeSmall = open((batch) => {
    last = { size: batch.length, at: performance.now() }
    for (const { lane, id } of batch) unwritten[lane].done(id)
  })
  const storeLarge = open(() => {})

  async function ingestSmall(request: IngestRequest): Promise<Fate> {
    const { lane, id } = request
    unwritten[lane].add(id)
    try {
      return await storeSmall(request)
    } finally {
      unwritten[lane].done(id)
    }
  }

  return {
    async ingest(request) {
      const isLarge = !fits(sizeOf(request), bounds, LARGE_SHARE)
      const fate = await (isLarge ? storeLarge(request) : ingestSmall(request))
      if ('error' in fate) throw fate.error
      return fate
    },
    async ready(lane) {
      await unwritten[lane].none()
      await pace()
    },
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
  onCommit: (batch: IngestRequest[]) => void,
): (batch: IngestRequest[]) => Promise<Fate[]> {
  const storeAll = async (batch: IngestRequest[]): Promise<Fate[]> => {
    const answers = await storeBusyAgain(storeBatch, batch, () => onCommit(batch))
    return batch.map((request) => {
      const answer = answers.get(request.id)
      return answer === undefined ? { error: new Error('the store gave no answer') } : { answer }
    })
  }
  const storeAllOrEach = async (batch: IngestRequest[]): Promise<Fate[]> => {
    try {
      return await storeAll(batch)
    } catch (error) {
      if (await isAway(error, pingStore)) return batch.map(() => ({ away: true }))
      if (batch.length === 1) return [{ error }]
      const alone: Fate[] = []
      // The batch may have written some of it.
      for (const request of batch) alone.push(...(await storeAllOrEach([{ ...request, redelivered: true }])))
      return alone
    }
  }
  return storeAllOrEach
}

/** Requests whose thread another process is writing are stored again after so many ms, */
const BUSY_PAUSE_MS = 20
/** and after so many ms beside the other process, at the cost of a sum. */
const OVERDUE_MS = 10_000

async function storeBusyAgain(
  storeBatch: StoreBatch,
  batch: IngestRequest[],
  onCommit: () => void,
): Promise<Map<string, StoredAnswer>> {
  const answers = await storeBatch(batch, onCommit)
  const began = performance.now()
  for (let busy = batch; ; ) {
    busy = busy.filter(({ id }) => !answers.has(id))
    if (busy.length === 0) return answers
    await delay(BUSY_PAUSE_MS)
    const isOverdue = performance.now() - began > OVERDUE_MS
    const stored = await storeBatch(
      busy.map((request) => ({ ...request, isOverdue })),
      () => {},
    )
    for (const [id, answer] of stored) answers.set(id, answer)
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
  const size = { documents: 0, characters: 0 }
  for (const { request, place } of requests) {
    const { documents, characters } = sizeOf(request)
    size.documents += documents
    size.characters += characters
    if (!fits(size, bounds, share) && places.length > 0) break
    places.push(place)
  }
  return places
}

function sizeOf({ thread: { quotes } }: IngestRequest): BatchBounds {
  return { documents: 1 + quotes.length, characters: quotes.reduce((sum, { text }) => sum + text.length, 0) }
}

function fits(size: BatchBounds, bounds: BatchBounds, share: number): boolean {
  return size.documents <= bounds.documents * share && size.characters <= bounds.characters * share
}
