// Sums what is stored of each tenant, by a walk through all sources: posts would pay for an index.
import type { Db } from 'mongodb'
import { PRIMARY } from './mongodb/commands.ts'
import { createSteps } from './mongodb/store-errors.ts'
import { withinTime } from './read-source.ts'

/** What is stored of a tenant. `stamp`: of the last post of one of its threads. */
export type TenantTotals = Record<'threads' | 'quotes' | 'words' | 'stamp', number>

/** The sources of one query, and the fewest if the server is slow: see `createSteps`. */
const PAGE = 25_000
const LEAST_PAGE = 25

const GROUP = {
  _id: '$tenant',
  threads: { $sum: 1 },
  quotes: { $sum: '$quoteCount' },
  words: { $sum: '$wordCount' },
  stamp: { $max: '$meta.stamp' },
  cover: { $max: '$meta.cover' },
  last: { $max: '$_id' },
}
type Group = TenantTotals & { _id: string | null; cover: number | null; last: string }

/**
 * Sums the stored threads of each tenant. Not a snapshot: pages of sources are read one after the
 * other. @throws {CommandFailedError}
 */
export async function sumTenants(db: Db): Promise<Map<string, TenantTotals>> {
  const tenants = new Map<string, TenantTotals>()
  const sources = db.collection('sources', PRIMARY)
  const inSteps = createSteps(PAGE, LEAST_PAGE)
  const { signal: lasts } = new AbortController()
  for (let after = '', isLast = false; !isLast; ) {
    const groups = await inSteps(async (limit) => {
      const page = [{ $match: { _id: { $gt: after } } }, { $sort: { _id: 1 } }, { $limit: limit }]
      const found = await withinTime(lasts, (signal) =>
        sources.aggregate<Group>([...page, { $group: GROUP }], { signal }).toArray(),
      )
      isLast = found.reduce((sum, { threads }) => sum + threads, 0) < limit
      return found
    })
    for (const { _id: tenant, last, cover, ...group } of groups) {
      if (last > after) after = last
      // What is left of a deleted thread belongs to no tenant.
      if (tenant === null) continue
      const { threads = 0, quotes = 0, words = 0, stamp = 0 } = tenants.get(tenant) ?? {}
      tenants.set(tenant, {
        threads: threads + group.threads,
        quotes: quotes + group.quotes,
        words: words + group.words,
        stamp: Math.max(stamp, group.stamp, cover ?? 0),
      })
    }
  }
  return tenants
}
