import { ObjectId } from 'mongodb'
import type { Collections } from './collections.ts'
import type { SourceDocument, WriterBatch, WriterToken } from './documents.ts'
import { type GuardedWrite, isInsert, isUpdate, writeGuarded } from './guarded-write.ts'
import { movedTotals } from './moved-totals.ts'
import { isContended, type ThreadRound } from './thread-work.ts'

/** A thread whose quotes may now be written. */
export interface OpenThread {
  round: ThreadRound
  /** The source as it now stands; absent where nothing of it was written yet, because no quote has to be. */
  source?: SourceDocument
  /** The source already says what it will say when the quotes are written. */
  isFinal: boolean
  /** By a clock that never jumps, in ms. */
  openedAt: number
}

/**
 * Names the requests as writers in each source that gets quotes, so that whoever comes after a crash can tell that `wordCount` may not be that of the
 * quotes. Opening moves the version: whoever read the source before must read it again. Where nobody else is about, the source is written as it will
 * be in the end; closing the batch is then all that is left to do.
 *
 * @param begin begins the batch; called where some quote has to be written.
 * @returns the threads that were not refused.
 */
export async function openSources(
  { guardedSources }: Collections,
  rounds: ThreadRound[],
  begin: () => Promise<WriterBatch>,
): Promise<OpenThread[]> {
  const version = new ObjectId()
  const needsBatch = rounds.some(({ plan }) => plan.quoteWrites.length > 0)
  const naming = { since: new Date(), ...(needsBatch ? await begin() : NO_BATCH) }
  const threads = rounds.map((round) => ({ openedAt: performance.now(), ...opened(round, version, naming) }))
  const writes = threads.flatMap(({ write }) => write ?? [])
  const kinds = [writes.filter(isInsert), writes.filter(isUpdate)]
  const refused = await Promise.all(kinds.map((some) => writeGuarded(guardedSources, some, version)))
  return threads.filter(({ round }) => refused.every((some) => !some.has(round.work.id)))
}

const NO_BATCH: WriterBatch = { writer: '', batch: 0 }

type Opened = Pick<OpenThread, 'round' | 'source' | 'isFinal'> & { write?: GuardedWrite }

function opened(round: ThreadRound, version: ObjectId, naming: Omit<WriterToken, 'request'>): Opened {
  const { stored, plan } = round
  if (isFinal(round)) {
    const source = finalSource(round, version, naming)
    if (plan.quoteWrites.length === 0 && !plan.source.advanced && !plan.source.changed)
      return { round, isFinal: true, ...(stored.source && { source: stored.source }) }
    const read = stored.source?.meta.version
    const write = read === undefined ? { insert: source } : { id: source._id, read, replace: source }
    return { round, isFinal: true, source, write }
  }
  if (stored.source === undefined || plan.quoteWrites.length === 0) return { round, isFinal: false }
  const { digest: _, ...before } = stored.source.meta
  const meta = { ...before, version, writers: tokens(round, naming) }
  const update = {
    $set: { 'meta.version': version, 'meta.writers': meta.writers },
    $unset: { 'meta.digest': '' },
  }
  const write = { id: stored.source._id, read: stored.source.meta.version, update }
  return { round, isFinal: false, source: { ...stored.source, meta }, write }
}

/** A new cover must not stand before the quotes that it does not cover are written: it would say of what they held before that it was said later. */
function isFinal(round: ThreadRound): boolean {
  const { stored, plan } = round
  if (stored.source === undefined) return true
  if (isContended(round)) return false
  return plan.quoteWrites.length === 0 || plan.source.document.meta.cover === stored.source.meta.cover
}

function finalSource(round: ThreadRound, version: ObjectId, naming: Omit<WriterToken, 'request'>): SourceDocument {
  const { stored, plan } = round
  const { writers: _, ...planned } = plan.source.document.meta
  const meta = { ...planned, version }
  return {
    ...plan.source.document,
    ...movedTotals(stored.source ?? plan.source.document, plan.quoteWrites),
    meta: plan.quoteWrites.length === 0 ? meta : { ...meta, writers: tokens(round, naming) },
  }
}

/** Those of others that stand, and one for each of our requests. */
function tokens({ work, stored }: ThreadRound, naming: Omit<WriterToken, 'request'>): WriterToken[] {
  const mine = new Set(work.requests.map((request) => request.id))
  const others = (stored.source?.meta.writers ?? []).filter((token) => !mine.has(token.request))
  return [...others, ...[...mine].map((request) => ({ request, ...naming }))]
}
