// Applies the records of deletions again after Redis or MongoDB was restored from a backup. Each has
// its old place in the order of acceptance: what was posted after it stays.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { DeletionRecord } from '@sluice/contract'
import { revokeKeys } from '@sluice/credentials/keys'
import type { Redis } from '@sluice/process/redis'
import { createPurge, type IngestJob, type QueueKeys, type StoredDeletion } from '@sluice/queue'
import {
  createBatchStore,
  type DeleteRequest,
  deletedBy,
  isLive,
  mongoCommands,
} from '@sluice/store'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'
import { findThreads } from '@sluice/store/walk'
import { counted } from '@sluice/terminal'
import type { Db } from 'mongodb'

type ToDelete = Pick<DeleteRequest, 'tenant' | 'stamp' | 'deletes'>

const KINDS = { deletion: 'deletion', tenant: 'deleted tenant' } as const

const AT_ONCE = 200
/** The pause before a source that a writer had open in the backup is tried again. */
const AGAIN_MS = 50

/**
 * Applies records, and returns lines that say what that removed. No process may run meanwhile, so
 * it needs no jobs: nobody sees or stores what is about to go.
 */
export async function applyDeletions(
  redis: Redis,
  keys: QueueKeys,
  db: Db,
  records: readonly DeletionRecord[],
): Promise<string[]> {
  if (records.length === 0) return []
  const commands = mongoCommands(db)
  const store = createBatchStore(commands)
  async function* pagesOf(some: readonly DeletionRecord[]): AsyncGenerator<ToDelete[]> {
    for (const { tenant, stamp, ...record } of some) {
      const asDeletes = (sourceId: string) => ({ tenant, stamp, deletes: { sourceId } })
      if (record.kind === 'tenant') {
        await revokeKeys(db, tenant, new Date(stamp / 1_000))
        for await (const page of findThreads(db, { tenant }))
          yield page.map(({ id }) => asDeletes(id))
      }
    }
    yield some.flatMap(({ tenant, stamp, ...record }) =>
      record.kind === 'deletion'
        ? record.deletes.map((deletes) => ({ tenant, stamp, deletes }))
        : [],
    )
  }

  const read = (all: readonly ToDelete[]) =>
    commands.find('sources', [...new Set(all.map(({ deletes }) => deletes.sourceId))], 'majority')

  /** Stores deletions, and counts by the totals: the answers are the same in a second run. */
  async function deleteAgain(all: ToDelete[], removed: { threads: number; quotes: number }) {
    const before = await read(all)
    let left = all.map((one) => ({ ...one, id: randomUUID(), redelivered: false }))
    for (let isFirst = true; left.length > 0; isFirst = false) {
      if (!isFirst) await delay(AGAIN_MS)
      const answers = await store.store(left)
      left = left.filter(({ id }) => !answers.has(id))
    }
    const after = await read(all)
    const sum = (sources: typeof after) => sources.reduce((sum, one) => sum + one.quoteCount, 0)
    removed.threads += before.filter(isLive).length - after.filter(isLive).length
    removed.quotes += sum(before) - sum(after)
  }

  /** Finds what is deleted of a job, by the marks of its sources and by the records of tenants. */
  async function findDeleted({ tenant, stamp, threads }: IngestJob): Promise<StoredDeletion[]> {
    const posts = threads.flatMap((one) => ('deletes' in one ? [] : [one]))
    const ids = posts.map(({ source }) => sourceIdOf(tenant, source))
    const found = await commands.find('sources', ids, 'majority')
    const sources = new Map(found.map((source) => [source._id, source]))
    const ofTenant = Math.max(
      ...records.map((one) => (one.kind === 'tenant' && one.tenant === tenant ? one.stamp : 0)),
    )
    return ids.flatMap((sourceId, at) => {
      const source = sources.get(sourceId)
      const deleted = source ? deletedBy(tenant, source) : { stamp: 0 }
      const name = posts[at]?.source
      const all: StoredDeletion[] = [
        { tenant, stamp: Math.max(deleted.stamp, ofTenant), sourceId, name },
        ...Object.entries(deleted.ofQuotes ?? {}).map(([id, upTo]) => ({
          ...{ tenant, stamp: upTo, sourceId, name },
          quoteIds: [sourceId + id],
        })),
      ]
      return all.filter((one) => one.stamp >= stamp)
    })
  }

  const lines: string[] = []
  for (const [kind, some] of Map.groupBy(records, (record) => record.kind)) {
    const removed = { threads: 0, quotes: 0 }
    for await (const page of pagesOf(some))
      for (let at = 0; at < page.length; at += AT_ONCE)
        await deleteAgain(page.slice(at, at + AT_ONCE), removed)
    const { threads, quotes } = removed
    lines.push(
      `Applied again: ${counted(some.length, KINDS[kind])}, which removed ${counted(threads, 'thread')} and ${counted(quotes, 'message')}.`,
    )
  }
  await store.settle()
  const purge = createPurge(redis, keys, { sourceIdOf, quoteIdsOf })
  const jobs = await purge.purgeJobs(findDeleted)
  return [...lines, `Removed what is deleted from ${counted(jobs, 'job')} of Redis.`]
}
