import { ObjectId } from 'mongodb'
import type { Collections } from './collections.ts'
import type { SourceDocument, Writer } from './documents.ts'
import { type GuardedWrite, writeGuarded } from './guarded-write.ts'
import type { ThreadRound } from './thread-work.ts'

/** A thread whose quotes may now be written. */
export interface OpenThread {
  round: ThreadRound
  /** The source as it now stands; absent where it was opened by nobody, because no quote has to be written. */
  source?: SourceDocument
  /** By a clock that never jumps, in ms. */
  openedAt: number
}

/**
 * Names the requests as writers in each source that gets quotes, or inserts the source with them, so that whoever comes after a crash
 * can tell that `wordCount` may lag. Opening moves the version: whoever read the source before must read it again.
 *
 * @returns the threads that were not refused.
 */
export async function openSources({ guardedSources }: Collections, rounds: ThreadRound[]): Promise<OpenThread[]> {
  const version = new ObjectId()
  const now = new Date()
  const threads = rounds.map((round) => ({ round, openedAt: performance.now(), ...opened(round, version, now) }))
  const writes = threads.flatMap(({ round, source }) => (source === undefined ? [] : [openingOf(round, source)]))
  if (writes.length === 0) return threads
  const refused = await writeGuarded(guardedSources, writes, version)
  return threads.filter(({ round }) => !refused.has(round.work.id))
}

function opened({ work, stored, plan }: ThreadRound, version: ObjectId, since: Date): { source?: SourceDocument } {
  const isNew = stored.source === undefined
  if (!isNew && plan.quoteWrites.length === 0) return {}
  const base = withoutDigest(stored.source ?? plan.source.document)
  if (plan.quoteWrites.length === 0) return { source: { ...base, meta: { ...base.meta, version } } }
  const mine = new Set(work.requests.map((request) => request.id))
  const others = (base.meta.writers ?? []).filter((writer) => !mine.has(writer.request))
  const writers: Writer[] = [...others, ...[...mine].map((request) => ({ request, since }))]
  return { source: { ...base, meta: { ...base.meta, version, writers } } }
}

function openingOf({ work, stored }: ThreadRound, source: SourceDocument): GuardedWrite {
  if (stored.source === undefined) return { insert: source }
  const { version, writers } = source.meta
  return {
    id: work.id,
    read: stored.source.meta.version,
    update: { $set: { 'meta.version': version, 'meta.writers': writers }, $unset: { 'meta.digest': '' } },
  }
}

/** Until the commit nobody knows that the thread is all that this request says. */
function withoutDigest(source: SourceDocument): SourceDocument {
  const { digest: _, ...meta } = source.meta
  return { ...source, meta }
}
