// Applies the records of deletions again after Redis or MongoDB was restored from a backup. Each
// has its old place in the order of acceptance: what was posted after it stays.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { DeletionRecords } from '@sluice/boot/deletion-records'
import type { DeletionRecord } from '@sluice/contract'
import { revokeKeys } from '@sluice/credentials/keys'
import { createFindErased, createOperations, findDue, removeRules } from '@sluice/operations'
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
import { chunksOf } from '@sluice/store/read'
import {
  addSuppression,
  readSuppressions,
  removeSuppression,
  removeSuppressions,
  restoreKey,
} from '@sluice/store/suppressions'
import { findThreads } from '@sluice/store/walk'
import { counted } from '@sluice/terminal'
import type { Db } from 'mongodb'

type ToDelete = Pick<DeleteRequest, 'tenant' | 'stamp' | 'deletes'>

const NOUNS = {
  deletion: 'deletion',
  erasure: 'erasure',
  retention: 'run of retention',
  tenant: 'deleted tenant',
} as const

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
  { stored }: Pick<DeletionRecords, 'stored'>,
): Promise<string[]> {
  const commands = mongoCommands(db)
  const store = createBatchStore(commands)
  const read = (all: readonly ToDelete[]) =>
    commands.find('sources', [...new Set(all.map(({ deletes }) => deletes.sourceId))], 'majority')
  // All other records are few, so they fit into memory.
  const others: DeletionRecord[] = []
  for await (const record of stored({ kind: { $ne: 'deletion' } })) others.push(record)
  const changed = await restoreSuppressions(db, others)
  const lines = [`Suppressions opened or ended again: ${changed}.`]
  for (const [kind, noun] of Object.entries(NOUNS)) {
    let [count, threads, quotes] = [0, 0, 0]
    const apply = async (page: readonly ToDelete[]) => {
      for (const all of chunksOf(page, AT_ONCE)) {
        // Count by the totals of the sources, because a deletion that is applied a second time
        // answers as the first time, but removes nothing.
        const before = await read(all)
        quotes += await storeAll(all)
        const after = await read(all)
        threads += before.filter(isLive).length - after.filter(isLive).length
        for (const { quoteCount } of before) quotes += quoteCount
        for (const { quoteCount } of after) quotes -= quoteCount
      }
    }
    let waiting: ToDelete[] = []
    for await (const record of stored({ kind })) {
      count += 1
      for await (const page of pagesOf(db, record)) {
        waiting = [...waiting, ...page]
        // Only deletions of single sources may wait for others. The next page of an erasure depends
        // on what this page has left.
        if (kind === 'deletion' && waiting.length < AT_ONCE) continue
        await apply(waiting)
        waiting = []
      }
    }
    await apply(waiting)
    const removed = `${counted(threads, 'thread')} and ${counted(quotes, 'message')}`
    if (count > 0) lines.push(`Applied again: ${counted(count, noun)}, which removed ${removed}.`)
  }
  await store.settle()
  // End the operations that the restored Redis has open: they would continue with new stamps, and
  // remove what was posted since.
  const operations = createOperations(redis, keys)
  for await (const { id, done = 0 } of stored({ done: { $exists: true } }))
    await operations.end(id, done)
  const purge = createPurge(redis, keys, { sourceIdOf, quoteIdsOf })
  const jobs = await purge.purgeJobs(createFindDeleted(commands, others))
  return [...lines, `Removed what is deleted from ${counted(jobs, 'job')} of Redis.`]

  /** Stores deletions, and returns the number of quotes that were redacted. */
  async function storeAll(all: readonly ToDelete[]): Promise<number> {
    let redacted = 0
    let left = all.map((one) => ({ ...one, id: randomUUID(), redelivered: false }))
    for (let isFirst = true; left.length > 0; isFirst = false) {
      if (!isFirst) await delay(AGAIN_MS)
      const answers = await store.store(left)
      for (const { id, deletes } of left) {
        const answer = answers.get(id)
        if (deletes.redacts && answer && 'outcome' in answer) redacted += answer.quotes
      }
      left = left.filter(({ id }) => !answers.has(id))
    }
    return redacted
  }
}

/** Finds what to delete for a record. */
async function* pagesOf(db: Db, record: DeletionRecord): AsyncGenerator<ToDelete[]> {
  const { stamp } = record
  if (record.kind === 'tenant') {
    const { tenant } = record
    for (const remove of [revokeKeys, removeSuppressions, removeRules])
      await remove(db, tenant, new Date(stamp / 1_000))
    for await (const page of findThreads(db, { tenant }))
      yield page.map(({ id }) => ({ tenant, stamp, deletes: { sourceId: id } }))
  }
  if (record.kind === 'retention')
    for await (const page of findDue(db, record.rules, record.days, record.at))
      yield page.map(({ id, tenant, until }) => {
        return { tenant, stamp: until, deletes: { sourceId: id, until } }
      })
  if (record.kind === 'erasure') {
    const { tenant } = record
    await restoreKey(db, record.key)
    for await (const { deletions } of createFindErased(record).inStore(db))
      yield deletions.map(({ deletes }) => ({ tenant, stamp, deletes }))
  }
  if (record.kind === 'deletion')
    yield record.deletes.map((deletes) => ({ tenant: record.tenant, stamp, deletes }))
}

/** Returns the number of suppressions that it opens or ends again. */
async function restoreSuppressions(db: Db, records: readonly DeletionRecord[]): Promise<number> {
  const { idsOf } = await readSuppressions(db)
  const tenants = records.filter((one) => one.kind === 'tenant')
  let changed = 0
  for (const record of records) {
    if (record.kind !== 'suppression') continue
    const { tenant, name, opened, stamp, by = '' } = record
    const isGone = tenants.some((one) => one.tenant === tenant && one.stamp >= stamp)
    const isOpen = idsOf.get(tenant)?.has(name) === true
    if (isOpen === (opened !== undefined) || (opened && isGone)) continue
    changed += 1
    if (opened === undefined) {
      await removeSuppression(db, tenant, name)
      continue
    }
    const { key, ...one } = opened
    await restoreKey(db, key)
    await addSuppression(db, tenant, { ...one, by, at: new Date(stamp / 1_000) })
  }
  return changed
}

/**
 * Makes a function that finds what is deleted of a job: by the marks of its sources and, because a
 * thread that is not stored has no source, by the records of tenants and erasures.
 */
function createFindDeleted(
  { find }: Pick<ReturnType<typeof mongoCommands>, 'find'>,
  records: readonly DeletionRecord[],
) {
  const tenants = records.filter((one) => one.kind === 'tenant')
  const erasures = records.flatMap((one) =>
    one.kind === 'erasure' ? [{ ...one, find: createFindErased(one) }] : [],
  )
  return async ({ tenant, stamp, threads }: IngestJob): Promise<StoredDeletion[]> => {
    const posts = threads.flatMap((one) => ('deletes' in one ? [] : [one]))
    const ids = posts.map(({ source }) => sourceIdOf(tenant, source))
    const found = await find('sources', ids, 'majority')
    const sources = new Map(found.map((source) => [source._id, source]))
    const ofTenant = tenants.flatMap((one) => (one.tenant === tenant ? [one.stamp] : []))
    const deleted = posts.flatMap((thread): StoredDeletion[] => {
      const { source: name } = thread
      const sourceId = sourceIdOf(tenant, name)
      const source = sources.get(sourceId)
      const marked = source ? deletedBy(tenant, source) : { stamp: 0 }
      const own = erasures.filter((one) => one.tenant === tenant)
      return [
        { tenant, stamp: Math.max(marked.stamp, ...ofTenant), sourceId, name },
        ...Object.entries(marked.ofQuotes ?? {}).map(([id, upTo]) => ({
          ...{ tenant, stamp: upTo, sourceId, name, quoteIds: [sourceId + id] },
        })),
        ...own.flatMap(({ find, stamp }) =>
          find.inPost(thread).map(({ deletes }) => ({ tenant, name, ...deletes, stamp })),
        ),
      ]
    })
    return deleted.filter((one) => one.stamp >= stamp)
  }
}
