// Erases the quotes of a speaker in the threads of a tenant, as an operation (`../failed`). No index
// finds a speaker's quotes, because posts would pay for it: the operation reads all quotes of the
// tenant, a few threads in each step.
import { setTimeout as delay } from 'node:timers/promises'
import type {
  Erasure,
  ErasureRequest,
  FailedJobFilter,
  FailedJobPlace,
  Operation,
} from '@sluice/contract'
import {
  type Deletion,
  type Enqueuer,
  type IngestJob,
  isJobId,
  newJobId,
  orUnavailable,
  QueueFullError,
  type QueueKeys,
  type Results,
} from '@sluice/queue'
import { quoteIdOf, quoteIdsOf, quotesOf, sourceIdOf } from '@sluice/store/ids'
import { chunksOf, type QuoteDocument, type SourceDocument, withinTime } from '@sluice/store/read'
import { createHashOf, hashSpeaker, readKey } from '@sluice/store/speakers'
import type { Redis } from 'ioredis'
import type { Db } from 'mongodb'
import type { FailedJobs } from '../failed/failed-jobs.ts'
import type { ErasurePlace, OpenOperation, Operations, StepDone } from '../failed/operations.ts'
import { createReadState, createReadTenant } from '../overview/overview.ts'

/** Bounds of one step, which must be shorter than the lease of operations. */
const THREADS_PER_STEP = 100
const QUOTES_PER_STEP = 2_000
const SOURCES_PER_STEP = 5_000
const FAILED_PER_STEP = 5
/** Bounds the time that a worker needs for one of the deletions of a job. */
const QUOTES_PER_DELETION = 100
/** The pause before a step that waits for others. */
const WAIT_MS = 100
const PRIMARY = { readPreference: 'primary', readConcern: { level: 'majority' } } as const
const NOBODY = new AbortController().signal

type ErasureMode = Erasure['mode']

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
export function createErasures(db: Db, operations: Pick<Operations, 'open' | 'find' | 'list'>) {
  return {
    /** @throws {OperationsFullError | QueueUnavailableError | CommandFailedError} */
    async open(tenant: string, by: string, request: ErasureRequest): Promise<Erasure> {
      const { service, mode = 'redact', dryRun = false, reason } = request
      const speaker = hashSpeaker(await readKey(db), tenant, request.speaker)
      const filter = { tenant, ...(service !== undefined && { service }) }
      const erases = { speaker, mode, dryRun }
      const why = reason === undefined ? {} : { why: reason }
      const opened = erasureOf(await operations.open('erase', { filter, erases, ...why }, 0, by))
      if (opened === undefined) throw new Error('an erasure without a tenant')
      return opened
    },
    /** Returns undefined if the tenant has no erasure with this id. */
    async find(tenant: string, id: string): Promise<Erasure | undefined> {
      const operation = isJobId(id) ? await orUnavailable(operations.find(id)) : undefined
      const erasure = operation && erasureOf(operation)
      return erasure?.tenant === tenant ? erasure : undefined
    },
    /** Lists the erasures, newest first. */
    async list(tenant: string): Promise<Erasure[]> {
      const found = (await orUnavailable(operations.list())).flatMap((one) => erasureOf(one) ?? [])
      return found.filter((one) => one.tenant === tenant)
    },
  }
}

interface EraseDeps {
  redis: Redis
  keys: QueueKeys
  db: Db
  enqueue: Enqueuer['enqueue']
  findResults: Results['find']
  failedJobs: Pick<FailedJobs, 'scan'>
}

/**
 * Makes the function that takes the next step of an erasure. A step depends only on what is recorded,
 * so any process can take it after a crash.
 */
export function createEraseStep(deps: EraseDeps) {
  const { redis, keys, db, failedJobs, enqueue, findResults } = deps
  const readState = createReadState(redis, keys)
  const readTenant = createReadTenant(redis, keys)
  const sources = db.collection<SourceDocument>('sources', PRIMARY)
  const quotes = db.collection<QuoteDocument>('quotes', PRIMARY)

  /**
   * Returns whether all that was accepted up to this moment is stored or has failed: the tenant has
   * no job in the queue, or all jobs are younger.
   */
  async function isDrained(tenant: string, at: number): Promise<boolean> {
    if ((await readTenant(tenant)).threads === 0) return true
    // Before the reading: a late answer must not make jobs seem younger.
    const now = Date.now()
    const { queued } = await readState()
    const ages = queued.flatMap(({ state, oldestMs }) => (state === 'failed' ? [] : oldestMs))
    return now - Math.max(...ages) > at
  }

  /**
   * Finds the next threads of the tenant, in the order of their ids, among those of all tenants.
   * `last`: the last id that was examined, undefined if no source is left.
   */
  async function findThreads(tenant: string, after: string) {
    const fields = { service: 1, externalId: 1, quoteCount: 1 }
    const inOrder = { sort: { _id: 1 }, limit: THREADS_PER_STEP, projection: fields } as const
    return withinTime(NOBODY, async (signal) => {
      const nth = {
        sort: { _id: 1 },
        projection: { _id: 1 },
        skip: SOURCES_PER_STEP,
        signal,
      } as const
      const end = (await sources.findOne({ _id: { $gt: after } }, nth))?._id
      const range = { $gt: after, ...(end !== undefined && { $lte: end }) }
      const found = await sources.find({ _id: range, tenant }, { ...inOrder, signal }).toArray()
      let count = 0
      const fits = found.findIndex(({ quoteCount }) => {
        count += quoteCount
        return count > QUOTES_PER_STEP
      })
      const threads = found.slice(0, fits === -1 ? found.length : Math.max(fits, 1))
      const isAll = threads.length === found.length && found.length < THREADS_PER_STEP
      return { threads, last: (isAll && end) || threads.at(-1)?._id }
    })
  }

  /**
   * Makes deletions of what the next failed jobs have of the speaker. They also remove the words
   * from the payloads, so they stay gone when an operator retries the jobs.
   */
  async function findFailed(
    { tenant = '', service }: FailedJobFilter,
    mode: ErasureMode,
    after: FailedJobPlace | undefined,
    isWanted: (quote: { speaker?: string }) => boolean,
  ) {
    const filter = { tenant, ...(service !== undefined && { service }) }
    const query = { filter, limit: FAILED_PER_STEP, ...(after && { after }) }
    const { jobs, next } = await failedJobs.scan(query)
    const lanes = Object.values(keys.jobs)
    const texts = await Promise.all(
      jobs.flatMap(({ id }) => lanes.map((lane) => redis.hget(lane + id, 'data'))),
    )
    const payloads = texts.flatMap((text): IngestJob[] => (text ? [JSON.parse(text)] : []))
    const deletions = payloads.flatMap(({ threads }) =>
      threads.flatMap((thread) => {
        if ('deletes' in thread) return []
        const sourceId = sourceIdOf(tenant, thread.source)
        const quoteIds = quoteIdsOf(sourceId, thread.quotes)
        const wanted = quoteIds.filter((_, at) => isWanted(thread.quotes[at] ?? {}))
        return deletionsOf(mode, sourceId, thread.source, wanted)
      }),
    )
    return { deletions, next }
  }

  /** Finds the next quotes of these threads, in the order of their ids. */
  const findQuotes = (ids: string[], after: string | undefined) =>
    withinTime(NOBODY, (signal) => {
      const { _id, ...filter } = quotesOf(...ids)
      const range = { ...filter, _id: after === undefined ? _id : { ..._id, $gt: after } }
      const projection = { sourceId: 1, speaker: 1 }
      const options = { projection, sort: { _id: 1 }, limit: QUOTES_PER_STEP, signal } as const
      return quotes.find(range, options).toArray()
    })

  return async ({ operation, after = START }: OpenOperation): Promise<StepDone> => {
    const { id: requestId, by, createdAt, filter = {}, erases } = operation
    const { tenant = '', service } = filter
    if (erases === undefined) throw new Error('an erasure that erases nothing')
    const waits = async () => {
      await delay(WAIT_MS)
      return { examined: 0, done: 0, isLast: false, after }
    }
    if (after.job !== undefined) {
      const results = await findResults([after.job])
      const result = results.get(after.job)
      if (results.has(after.job) && result === undefined) return waits()
      const { job: _, ...place } = after
      const receipts = result?.receipts ?? [null]
      const counts = receipts.map((one) => (one && 'quotes' in one.source ? one.source.quotes : 0))
      const done = counts.reduce((sum, count) => sum + count, 0)
      const failed = receipts.includes(null) ? 1 : 0
      return { examined: 0, done, failed, isLast: false, after: place }
    }
    const hashOf = createHashOf(await readKey(db), tenant)
    const isWanted = ({ speaker }: { speaker?: string }) =>
      speaker !== undefined && hashOf(speaker) === erases.speaker
    if (after.id === '') {
      if (!(await isDrained(tenant, Date.parse(createdAt)))) return waits()
      const { deletions, next } = await findFailed(filter, erases.mode, after.failed, isWanted)
      const place = next === undefined ? FIRST : { ...START, failed: next }
      return send(erases.dryRun ? [] : deletions, { examined: 0, after: place })
    }

    const { threads, last } = await findThreads(tenant, after.id)
    if (last === undefined) return { examined: 0, done: 0, isLast: true }
    const wanted = threads.filter((thread) => (service ?? thread.service) === thread.service)
    const ids = wanted.map(({ _id }) => _id)
    const read = ids.length === 0 ? [] : await findQuotes(ids, after.quote)
    const found = read.filter(isWanted)
    // Threads with more quotes take several steps. Ids of quotes begin with those of their sources.
    const isWhole = read.length < QUOTES_PER_STEP
    const place: ErasurePlace = isWhole
      ? { at: 0, id: last }
      : { ...after, quote: read.at(-1)?._id }
    const step = { examined: isWhole ? wanted.length : 0, after: place }
    if (erases.dryRun) return { ...step, done: found.length, isLast: false }
    const ofSource = Map.groupBy(found, ({ sourceId }) => sourceId)
    const deletions = wanted.flatMap((thread) =>
      deletionsOf(
        erases.mode,
        thread._id,
        thread,
        (ofSource.get(thread._id) ?? []).map(({ _id }) => _id),
      ),
    )
    return send(deletions, step)

    /** Enqueues deletions, if there are any. The next step reads their result. */
    async function send(
      threads: Deletion[],
      step: { examined: number; after: ErasurePlace },
    ): Promise<StepDone> {
      if (threads.length === 0) return { ...step, done: 0, isLast: false }
      const jobId = newJobId(threads[0]?.name.externalId)
      try {
        await enqueue(jobId, 'bulk', { tenant, requestId, keyId: by, retained: true, threads })
      } catch (error) {
        if (error instanceof QueueFullError) return waits()
        throw error
      }
      return { ...step, done: 0, isLast: false, after: { ...step.after, job: jobId } }
    }
  }
}

const START: ErasurePlace = { at: 0, id: '' }
/** Before all ids of sources. */
const FIRST: ErasurePlace = { at: 0, id: '!' }

/**
 * Makes the deletions of these quotes of a source. A quote that is removed is redacted before, if the
 * source repeats it: so the title goes, too.
 */
function deletionsOf(
  mode: ErasureMode,
  sourceId: string,
  { service, externalId }: Deletion['name'],
  quoteIds: string[],
): Deletion[] {
  const name = { service, externalId }
  const make = (some: readonly string[], redacts: boolean) =>
    Array.from(chunksOf(some, QUOTES_PER_DELETION), (ids) => ({
      deletes: { sourceId, quoteIds: ids, ...(redacts && { redacts }) },
      name,
    }))
  if (mode === 'redact') return make(quoteIds, true)
  const repeated = quoteIds.filter((id) => id === quoteIdOf(sourceId, externalId))
  return [...make(repeated, true), ...make(quoteIds, false)]
}
