import type { SourceDocument } from '@sluice/store'
import type { Db } from 'mongodb'

/** More would be a list for a program; what they have in common shows in these. */
const SOURCES_NAMED = 20

/** What people know the first of these sources by, one line each; the others are not looked up. */
export async function nameSources(db: Db, ids: readonly string[]): Promise<string[]> {
  const some = ids.slice(0, SOURCES_NAMED)
  if (some.length === 0) return []
  const found = await db
    .collection<SourceDocument>('sources')
    .find({ _id: { $in: some } }, { projection: { tenant: 1, service: 1, externalId: 1 } })
    .toArray()
  return found.map(({ _id, tenant, service, externalId }) => `${service}/${externalId} of tenant ${tenant} (${_id})`)
}
