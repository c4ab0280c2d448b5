// Erases a speaker, and suppresses later posts of the speaker, which are stored as redacted.
//
// An erasure finds the quotes of a speaker in the threads of a tenant, as an operation (`../failed`).
// No index finds a speaker's quotes, because posts would pay for it: the operation reads all quotes
// of the tenant, a few threads in each step.
import { setTimeout as delay } from 'node:timers/promises'
import { createDeletionRecords } from '@sluice/boot/deletion-records'
import {
  createRedactsOf,
  type DeletionRecord,
  type EndedSuppression,
  ERASED,
  type Erasure,
  type ErasureRequest,
  type FailedJobPlace,
  moreOf,
  type Operation,
  type SuppressionList,
  type SuppressionsQuery,
} from '@sluice/contract'
import { createGroupCommit } from '@sluice/process'
import { readRedisTime } from '@sluice/process/redis'
import {
  createPurge,
  type Deletion,
  type IngestJob,
  isJobId,
  newJobId,
  noteSuppressions,
  orUnavailable,
  type QueueKeys,
  sourceNameOf,
} from '@sluice/queue'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'
import { chunksOf, NOBODY, PRIMARY_MAJORITY, withinTime } from '@sluice/store/read'
import {
  addSuppression,
  createHashOf,
  hashSpeaker,
  hasSuppression,
  listSuppressions,
  readKey,
  removeSuppression,
  type Suppression,
  suppressionIdOf,
} from '@sluice/store/suppressions'
import { type AgedThread, type FoundQuotes, findQuotes, findThreads } from '@sluice/store/walk'
import type { Redis } from 'ioredis'
import type { Db } from 'mongodb'
import type { FailedJobs } from '../failed/failed-jobs.ts'
import type { OpenOperation, Operations } from '../failed/operations.ts'
import {
  APART_MS,
  pauseStep,
  type StepDeps,
  type Steps,
  sendDeletions,
  THREADS_PER_JOB,
} from '../threads/steps.ts'

function erasureOf({ filter, erases, why, ...operation }: Operation): Erasure | undefined {
  if (filter?.tenant === undefined || erases === undefined) return undefined
  const { tenant, service } = filter
  const { id, by, state, createdAt, changedAt, examined, done, failed = 0 } = operation
  return {
    ...{ id, tenant, ...(service !== undefined && { service }), ...erases },
    ...(why !== undefined && { reason: why }),
    ...{ by, state, createdAt, changedAt, threads: examined, quotes: done, failed },
  }
}

export type Erasures = ReturnType<typeof createErasures>

/** Makes the functions that open and show the erasures of a tenant. */
export function createErasures(
  db: Db,
  operations: Pick<Operations, 'open' | 'find' | 'list'>,
  suppressions: Pick<Suppressions, 'open'>,
) {
  return {
    /**
     * @throws {OperationsFullError | SuppressionsFullError | QueueUnavailableError |
     * CommandFailedError}
     */
    async open(tenant: string, by: string, asked: ErasureRequest): Promise<Erasure> {
      const { service, mode = 'redact', dryRun = false, suppress = false, reason } = asked
      const speaker = hashSpeaker(await readKey(db), tenant, asked.speaker)
      const filter = { tenant, ...(service !== undefined && { service }) }
      const erases = { speaker, mode, dryRun }
      const why = reason === undefined ? {} : { why: reason }
      const id = newJobId()
      // First, so that the operation finds what is accepted before.
      if (suppress && !dryRun)
        await suppressions.open(tenant, {
          ...{ speaker, by, at: new Date(), erasure: id },
          ...(service !== undefined && { service }),
        })
      const request = { filter, erases, ...why }
      const opened = erasureOf(await operations.open('erase', request, 0, by, undefined, id))
      if (opened === undefined) throw new Error('an erasure without a tenant')
      return opened
    },
    /** Returns undefined if the tenant has no erasure with this id. */
    async find(tenant: string, id: string): Promise<Erasure | undefined> {
      const found = isJobId(id) ? await orUnavailable(operations.find(id)) : undefined
      return found && (await list(tenant, [found])).find((one) => one.id === id)
    },
    list,
  }

  /**
   * Lists the erasures of a tenant, newest first. Leaves out those before the tenant was last
   * deleted: another one may have its name now.
   */
  async function list(tenant: string, others: Operation[] = []): Promise<Erasure[]> {
    const all = [...others, ...(await orUnavailable(operations.list()))]
    const own = all.filter(({ filter }) => filter?.tenant === tenant)
    const end = own.find(({ kind, filter }) => kind === 'delete' && !filter?.externalId)
    const later = own.filter(({ createdAt }) => !end || createdAt > end.createdAt)
    return later.flatMap((one) => erasureOf(one) ?? [])
  }
}

const FAILED_AT_ONCE = 5
const JOBS_AT_ONCE = 500
/** The most by which the clocks of Redis and this process may differ. */
const CLOCKS_MS = 60_000

interface EraseDeps extends StepDeps {
  redis: Redis
  keys: QueueKeys
  db: Db
  failedJobs: Pick<FailedJobs, 'scan'>
}

/**
 * Makes the steps of an erasure. After a crash, they begin behind the last thread that is recorded:
 * what is erased already is not found again.
 */
export async function* eraseSpeaker(deps: EraseDeps, open: OpenOperation): Steps {
  const { redis, keys, db, failedJobs } = deps
  const { filter = {}, erases } = open.operation
  const { tenant = '' } = filter
  if (erases === undefined) throw new Error('an erasure that erases nothing')
  const { dryRun } = erases
  const find = createFindErased({ tenant, ...filter, ...erases, key: await readKey(db) })
  const { id: after } = open.after ?? {}
  const since = (Date.parse(open.operation.createdAt) - CLOCKS_MS) * 1_000

  const purge = createPurge(redis, keys, { sourceIdOf, quoteIdsOf })
  const stamp = (Date.parse(open.operation.createdAt) + APART_MS) * 1_000
  const toPurge = ({ threads }: IngestJob) =>
    threads.flatMap(find.inPost).map(({ deletes, name }) => ({ tenant, stamp, name, ...deletes }))

  if (!after) yield* eraseAccepted()
  for await (const { deletions, counts } of find.inStore(db, { after, since })) {
    if (!dryRun) yield* sendDeletions(deps, open, tenant, deletions)
    if (counts === undefined) yield {}
    else
      yield {
        ...{ examined: counts.threads, after: { id: counts.last } },
        ...(dryRun && { done: counts.quotes }),
      }
  }

  // Results in Redis may name the speaker although no stored quote does, because a later post has
  // corrected the name. So look through the results, too.
  if (!dryRun) for await (const _ of purge.purgeResults(tenant, toPurge, find.isName)) yield {}

  /**
   * Waits until all that was accepted before this moment is stored, or has failed and is erased.
   * Looks through the failed jobs before and after the wait, because an operator may retry some
   * during it.
   */
  async function* eraseAccepted(): Steps {
    yield* eraseFailed()
    const ids: string[] = []
    for await (const found of redis.hscanStream(`${keys.base}load:jobs`, { count: JOBS_AT_ONCE }))
      for (const [id, packed] of chunksOf<string>(found, 2))
        if (id !== undefined && packed?.includes(tenant)) ids.push(id)
    do {
      while (await areQueued(ids)) yield* pauseStep()
      yield* eraseFailed()
    } while (await areQueued(ids))
  }

  async function areQueued(ids: readonly string[]): Promise<boolean> {
    for (const some of chunksOf(ids, JOBS_AT_ONCE)) {
      const found = await redis.hmget(`${keys.base}load:jobs`, ...some)
      if (found.some((packed) => packed !== null)) return true
    }
    return false
  }

  /**
   * Erases the quotes of the speaker in the payloads of failed jobs, so that a retry does not store
   * them. Deletes nothing that is stored: a later post may have corrected the speaker. The titles go
   * first and the quotes last, because the quotes say what is left to erase if this process dies.
   */
  async function* eraseFailed(): Steps {
    let place: FailedJobPlace | undefined
    for (let isLast = dryRun; !isLast; isLast = place === undefined) {
      const { jobs, next } = await failedJobs.scan({ filter, limit: FAILED_AT_ONCE, after: place })
      const payloads = jobs.flatMap(({ id }) => Object.values(keys.jobs).map((lane) => lane + id))
      const found: Deletion[] = []
      const titlesOf = (job: IngestJob) => {
        found.push(...job.threads.flatMap(find.inPost))
        return toPurge(job).filter(({ quoteIds }) => quoteIds?.length === 0)
      }
      for (const key of payloads) await purge.purgeAt(key, titlesOf)
      for (const some of chunksOf(found, THREADS_PER_JOB))
        yield* sendDeletions(deps, open, tenant, await withoutStored(some))
      for (const key of payloads) await purge.purgeAt(key, toPurge)
      yield {}
      place = next
    }
  }

  /**
   * Returns deletions of the quotes that are not stored. They leave a mark, because a worker that
   * was frozen may still store a failed job.
   */
  async function withoutStored(found: readonly Deletion[]): Promise<Deletion[]> {
    const _id = { $in: found.flatMap(({ deletes }) => deletes.quoteIds ?? []) }
    const sourceId = { $in: found.map(({ deletes }) => deletes.sourceId) }
    const quotes = db.collection<Record<'_id' | 'sourceId', string>>('quotes', PRIMARY_MAJORITY)
    const all = await withinTime(NOBODY, (signal) =>
      quotes.find({ _id, sourceId }, { projection: { _id: 1 }, signal }).toArray(),
    )
    const stored = new Set(all.map((quote) => quote._id))
    return found.flatMap(({ deletes: { sourceId, quoteIds = [] }, name }) => {
      const left = quoteIds.filter((id) => !stored.has(id))
      return left.length === 0 ? [] : [{ deletes: { sourceId, quoteIds: left }, name }]
    })
  }
}

type Erased = Pick<
  Extract<DeletionRecord, { kind: 'erasure' }>,
  'tenant' | 'service' | 'speaker' | 'key' | 'mode'
>

interface Walk {
  after?: string | undefined
  /**
   * A stamp. Also finds what was redacted after it: a post of a suppressed speaker may have
   * replaced words that results in Redis still have.
   */
  since?: number
}

type Found = { deletions: Deletion[]; counts?: { threads: number; quotes: number; last: string } }

/** Threads whose deletions may share a job. */
const THREADS_AT_ONCE = { redact: 100, remove: THREADS_PER_JOB }
/** Bounds the time that a worker needs for one of the deletions of a job. */
const QUOTES_PER_DELETION = 100

const NOTHING_FOUND: FoundQuotes = { ids: [], redacted: [], redacts: 'quotes' }

/** Makes the functions that find what an erasure deletes. */
export function createFindErased({ tenant, service, speaker, key, mode }: Erased) {
  const hashOf = createHashOf(key, tenant)
  const isName = (name: string | undefined) => name !== undefined && hashOf(name) === speaker
  const isErased = (quote: { speaker?: string }) => isName(quote.speaker)
  return {
    isName,
    /**
     * Finds deletions in the stored threads after an id. After the deletions of some threads,
     * `counts` has the number of these threads and of their erased quotes, and the last id.
     * @throws {CommandFailedError}
     */
    async *inStore(db: Db, { after, since }: Walk = {}): AsyncGenerator<Found> {
      const isWanted = (quote: { speaker?: string; meta: { stamp: number } }) =>
        (since && quote.speaker === ERASED && quote.meta.stamp >= since) || isErased(quote)
      const of = { tenant, ...(service !== undefined && { service }) }
      for await (const found of findThreads(db, of, { after })) {
        yield { deletions: [] }
        for (const threads of chunksOf(found, THREADS_AT_ONCE[mode])) {
          const ids = threads.map(({ id }) => id)
          let quotes = 0
          // Each day of a chat is named after the person, also one on which they said nothing.
          const named = threads.filter(({ channelName }) => isName(channelName))
          const onlyName: FoundQuotes = { ...NOTHING_FOUND, redacts: 'channel' }
          const deletions = named.flatMap((one) => deletionsOf(one, onlyName))
          if (deletions.length > 0) yield { deletions }
          for await (const page of findQuotes(db, ids, isWanted)) {
            for (const { ids } of page.values()) quotes += ids.length
            const deletions = threads.flatMap((one) => deletionsOf(one, page.get(one.id)))
            yield { deletions }
          }
          const counts = { threads: ids.length, quotes, last: ids.at(-1) ?? '' }
          yield { deletions: [], counts }
        }
      }
    },
    /** Finds deletions in a post. */
    inPost(thread: IngestJob['threads'][number]): Deletion[] {
      const name = sourceNameOf(thread)
      if ('deletes' in thread || (service ?? name.service) !== name.service) return []
      const { source, quotes } = thread
      const id = sourceIdOf(tenant, name)
      const erased = quotes.filter(isErased)
      const ids = quoteIdsOf(id, quotes).filter((_, at) => isErased(quotes[at] ?? {}))
      const least = isName(source.channelName) ? 'channel' : 'quotes'
      const redacts = erased.map(createRedactsOf(source)).reduce(moreOf, least)
      return deletionsOf({ id, name }, { ...NOTHING_FOUND, ids, redacts })
    },
  }

  /**
   * The fields of the source are redacted by a separate deletion, without quotes. Quotes that the
   * source can no longer remember as removed (`isFull`) are redacted instead, which needs no mark.
   */
  function deletionsOf(
    { id: sourceId, name }: Pick<AgedThread, 'id' | 'name'>,
    { ids, redacted, redacts, isFull }: FoundQuotes = NOTHING_FOUND,
  ): Deletion[] {
    const make = (some: string[], how?: 'quotes') =>
      Array.from(chunksOf(some, QUOTES_PER_DELETION), (quoteIds) => {
        return { deletes: { sourceId, quoteIds, ...(how && { redacts: how }) }, name }
      })
    const own = make(ids, mode === 'redact' || isFull ? 'quotes' : undefined)
    const some = [...own, ...make(redacted, 'quotes')]
    if (redacts === 'quotes') return some
    return [{ deletes: { sourceId, quoteIds: [], redacts, speaker }, name }, ...some]
  }
}

/**
 * After a change, workers read the whole list. A flood of changes must not keep them from posts.
 */
const NOTE_EVERY_MS = 1_000

/** The tenant has as many suppressions as it may have. */
export class SuppressionsFullError extends Error {
  override name = 'SuppressionsFullError'
}

type Change = Pick<Extract<DeletionRecord, { kind: 'suppression' }>, 'by' | 'opened'>

export type Suppressions = ReturnType<typeof createSuppressions>

/**
 * Makes the functions for the suppressions of a tenant. A change counts for all posts that are
 * accepted after it.
 */
export function createSuppressions(redis: Redis, keys: QueueKeys, db: Db) {
  let notedAt = Number.NEGATIVE_INFINITY
  const note = createGroupCommit(async (changes: true[]) => {
    await delay(Math.max(notedAt + NOTE_EVERY_MS - performance.now(), 0))
    await orUnavailable(noteSuppressions(redis, keys))
    notedAt = performance.now()
    return changes
  })
  const records = createDeletionRecords(redis, keys, db)
  /** Records a change, because a backup of MongoDB may lack it. */
  async function record(tenant: string, name: string, what: Change): Promise<void> {
    const stamp = Math.floor((await orUnavailable(readRedisTime(redis))) * 1_000)
    const id = `${tenant}/${name}`
    await records.write([{ kind: 'suppression', id, stamp, tenant, name, ...what }])
  }
  return {
    /** @throws {SuppressionsFullError | QueueUnavailableError | CommandFailedError} */
    async open(tenant: string, added: Suppression): Promise<void> {
      if (!(await addSuppression(db, tenant, added))) throw new SuppressionsFullError()
      const { by, at: _, ...one } = added
      const opened = { ...one, key: await readKey(db) }
      await record(tenant, suppressionIdOf(added), { by, opened })
      await note(true)
    },
    /** @throws {QueueUnavailableError | CommandFailedError} */
    async end(tenant: string, id: string): Promise<EndedSuppression> {
      const isOpen = await hasSuppression(db, tenant, id)
      // Recorded before it is removed: a repeat of a request that failed in between would find
      // nothing to record.
      if (isOpen) await record(tenant, id, {})
      const isEnded = isOpen && (await removeSuppression(db, tenant, id))
      // Tell the workers even if the suppression is absent: an earlier request may have removed it,
      // and then failed to tell them.
      await note(true)
      return { id, outcome: isEnded ? 'ended' : 'absent' }
    },
    /** @throws {CommandFailedError} */
    async list(tenant: string, query: SuppressionsQuery): Promise<SuppressionList> {
      const { limit = 100, after = '' } = query
      const found = await listSuppressions(db, tenant, after, limit + 1)
      const suppressions = found
        .slice(0, limit)
        .map(({ at, ...one }) => ({ ...one, createdAt: at.toISOString() }))
      const last = suppressions.at(-1)
      return { suppressions, ...(found.length > limit && last && { next: last.id }) }
    },
  }
}
