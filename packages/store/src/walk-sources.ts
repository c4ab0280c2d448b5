// The entry point `@sluice/store/walk`: walks through all sources, to sum what tenants have stored and
// to find threads by their age. An index for that would cost each post. Never writes.
import type { Collection, Db, Filter } from 'mongodb'
import type { SourceDocument } from './documents.ts'
import { AFTER_IDS } from './ids.ts'
import { PRIMARY } from './mongodb/commands.ts'
import { withinTime } from './read-source.ts'

/** The digits of ids, in the order in which MongoDB sorts them. */
const DIGITS = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'

/** About so many sources are in a part, or a 64th of all: the emulator walks them for each part. */
const PART = 25_000

/**
 * Reads all sources by the first digit of their ids, one part after the other. Not a snapshot.
 * @throws {CommandFailedError}
 */
async function* walk<Found>(
  db: Db,
  read: (
    sources: Collection<SourceDocument>,
    part: Filter<SourceDocument>,
    how: { signal: AbortSignal },
  ) => Promise<Found[]>,
): AsyncGenerator<Found[]> {
  const sources = db.collection<SourceDocument>('sources', PRIMARY)
  const count = await sources.estimatedDocumentCount()
  const digits = Math.ceil(DIGITS.length / Math.ceil((count + 1) / PART))
  for (let at = 0; at < DIGITS.length; at += digits) {
    const part = { _id: { $gte: DIGITS[at] ?? '', $lt: DIGITS[at + digits] ?? AFTER_IDS } }
    yield await withinTime(new AbortController().signal, (signal) =>
      read(sources, part, { signal }),
    )
  }
}

/** What is stored of a tenant. `stamp`: of the last post of one of its threads. */
export type TenantTotals = Record<'threads' | 'quotes' | 'words' | 'stamp', number>

const SUM = {
  _id: '$tenant',
  threads: { $sum: 1 },
  quotes: { $sum: '$quoteCount' },
  words: { $sum: '$wordCount' },
  stamp: { $max: '$meta.stamp' },
}

/** Sums the stored threads of each tenant. @throws {CommandFailedError} */
export async function sumTenants(db: Db): Promise<Map<string, TenantTotals>> {
  const tenants = new Map<string, TenantTotals>()
  type Sum = TenantTotals & { _id: string | null }
  const parts = walk(db, (sources, $match, how) =>
    sources.aggregate<Sum>([{ $match }, { $group: SUM }], how).toArray(),
  )
  for await (const sums of parts)
    for (const { _id: tenant, ...sum } of sums) {
      // What is left of a deleted thread belongs to no tenant.
      if (tenant === null) continue
      const { threads = 0, quotes = 0, words = 0, stamp = 0 } = tenants.get(tenant) ?? {}
      tenants.set(tenant, {
        threads: threads + sum.threads,
        quotes: quotes + sum.quotes,
        words: words + sum.words,
        stamp: Math.max(stamp, sum.stamp),
      })
    }
  return tenants
}

/** A thread, with the stamp of its last post. */
export interface AgedThread extends Pick<SourceDocument, 'tenant' | 'service' | 'externalId'> {
  id: string
  stamp: number
}

/**
 * Finds the threads whose last post has this stamp or an older one, part by part.
 * @throws {CommandFailedError}
 */
export async function* findThreads(
  db: Db,
  { tenant, until }: { tenant?: string; until: number },
): AsyncGenerator<AgedThread[]> {
  const filter = { tenant: tenant ?? { $exists: true }, 'meta.stamp': { $lte: until } }
  const projection = { tenant: 1, service: 1, externalId: 1, 'meta.stamp': 1 }
  const parts = walk(db, (sources, part, how) =>
    sources.find<SourceDocument>({ ...part, ...filter }, { projection, ...how }).toArray(),
  )
  for await (const found of parts)
    yield found.map(({ _id: id, meta: { stamp }, ...names }) => ({ id, ...names, stamp }))
}
