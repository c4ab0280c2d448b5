import { ObjectId } from 'mongodb'
import type { Collections } from './collections.ts'
import { type Closed, contestOpen } from './contest-open.ts'
import { countQuotes, type QuoteTotals } from './count-quotes.ts'
import type { SourceDocument, WriterToken } from './documents.ts'
import { type GuardedWrite, writeGuarded } from './guarded-write.ts'

/** Of a source, what may disagree with its quotes. */
export type SourceTotals = Pick<SourceDocument, '_id' | 'wordCount' | 'quoteCount' | 'meta'>

/** The fields of `SourceTotals`, as MongoDB wants them named. */
export const TOTALS = { wordCount: 1, quoteCount: 1, meta: 1 }

/** One sum must not take too long, however many sources there are. */
export const SOURCES_AT_A_TIME = 100

/** Sums the quotes of these sources, and takes off one writer's tokens, until each agrees. Others who write them sum them in their turn. */
export async function bringIntoAgreement(
  store: Collections,
  closed: Closed,
  ids: string[],
  isOwn: (token: WriterToken) => boolean,
): Promise<void> {
  for (let start = 0; start < ids.length; start += SOURCES_AT_A_TIME)
    await bringSomeIntoAgreement(store, closed, ids.slice(start, start + SOURCES_AT_A_TIME), isOwn)
}

async function bringSomeIntoAgreement(
  store: Collections,
  closed: Closed,
  ids: string[],
  isOwn: (token: WriterToken) => boolean,
): Promise<void> {
  let left = ids
  while (left.length > 0) {
    const found = await store.sources.find<SourceTotals>({ _id: { $in: left } }, { projection: TOTALS }).toArray()
    await contestOpen(store, closed, found, isOwn)
    const version = new ObjectId()
    const sums = await countQuotes(
      store,
      found.map((source) => source._id),
    )
    const writes = found.flatMap((source) => agreeing(source, sums.get(source._id), isOwn, version) ?? [])
    left = writes.length === 0 ? [] : [...(await writeGuarded(store.guardedSources, writes, version))]
  }
}

/** The write that brings a source into agreement; none where it is. */
export function agreeing(
  source: SourceTotals,
  sum: QuoteTotals | undefined,
  isGone: (token: WriterToken) => boolean,
  version: ObjectId,
): GuardedWrite | undefined {
  const { _id, wordCount, quoteCount, meta } = source
  const writers = (meta.writers ?? []).filter((token) => !isGone(token))
  const totals = sum ?? { wordCount: 0, quoteCount: 0 }
  const agrees = totals.wordCount === wordCount && totals.quoteCount === quoteCount
  if (agrees && writers.length === (meta.writers ?? []).length) return undefined
  const set = { ...totals, 'meta.version': version }
  const update =
    writers.length === 0
      ? { $set: set, $unset: { 'meta.writers': '', 'meta.digest': '' } }
      : { $set: { ...set, 'meta.writers': writers }, $unset: { 'meta.digest': '' } }
  return { id: _id, read: meta.version, update }
}
