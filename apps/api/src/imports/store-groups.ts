// Stores the groups of an import beside each other, and yields their results in the order of the input.
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { ImportSummary, Outcome, StoredItem, Thread } from '@sluice/contract'
import { type IngestJob, newJobId, QueueFullError, RateLimitedError, type Receipt } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import type { ApiDeps } from '../api-deps.ts'
import { asProblem, itemPending, jobFailed, type ProblemError } from '../request/problem-error.ts'
import type { RequestContext } from '../request/request-context.ts'
import { enqueueJob } from '../sources/post-source.ts'
import {
  type ImportGroup,
  type ImportGroups,
  itemProblem,
  type RefusedItem,
  refuseItem,
  type ThreadItem,
} from './group-items.ts'

/** An import in progress, and what storing it needs. */
export interface ImportRun {
  deps: Pick<ApiDeps, 'enqueuer' | 'metrics' | 'replyListener'> & { limits: Pick<ApiDeps['limits'], 'waitSeconds'> }
  context: Pick<RequestContext, 'tenant' | 'requestId' | 'quota' | 'signal'>
  /** The number of jobs without a result. */
  jobs: number
  /** The size of their threads, and the approximate size of all results that were not yielded. */
  bytes: number
  /** The time at which a job was enqueued or its result arrived, in milliseconds since the epoch. */
  movedAt: number
  /** Resolves when the last job was enqueued or refused. */
  enqueued: Promise<unknown>
}

/** The state of an import that begins. */
export function newRun() {
  return { jobs: 0, bytes: 0, movedAt: Date.now(), enqueued: Promise.resolve() }
}

// Bounds of the input that is read before its results are yielded. A caller that reads no results stops no input.
const MAX_JOBS = 8
const MAX_BYTES = 3 * 1024 * 1024
const MAX_GROUPS = 1_000

/** Stores groups, and yields the results of each group in the order of the input. */
export async function* storeGroups(groups: ImportGroups, run: ImportRun): AsyncGenerator<ItemResult[]> {
  const { signal } = run.context
  let room = Promise.withResolvers<void>()
  function release(bytes: number): void {
    run.bytes -= bytes
    room.resolve()
    room = Promise.withResolvers()
  }
  signal.addEventListener('abort', () => room.resolve())
  const isFull = () => run.jobs >= MAX_JOBS || run.bytes >= MAX_BYTES

  async function* startGroups() {
    for await (const group of groups) {
      run.jobs += 1
      run.bytes += group.bytes + group.resultBytes
      const results = storeGroup(group, run).finally(() => {
        run.jobs -= 1
        release(group.bytes)
      })
      results.catch(() => {}) // The loop below reports the error, unless the import has ended.
      yield { results, bytes: group.resultBytes }
      // If a job overtook a refused job, items of one externalId would be accepted out of order.
      await run.enqueued
      while (isFull() && !signal.aborted) await room.promise
    }
  }

  // A Readable reads ahead, so groups start while earlier groups are in progress.
  for await (const { results, bytes } of Readable.from(startGroups(), { highWaterMark: MAX_GROUPS })) {
    yield await results
    release(bytes)
  }
}

async function storeGroup({ items, threads }: ImportGroup, run: ImportRun): Promise<ItemResult[]> {
  const { context } = run
  const jobId = newJobId()
  try {
    const receipts = threads.length === 0 ? [] : await storeThreads(threads, jobId, run)
    let stored = 0
    return items.map((item) => {
      if ('problem' in item) return refusedResult(item)
      const receipt = receipts[stored++]
      return receipt ? storedResult(item, context.tenant, receipt) : failedResult(item, jobFailed(jobId), context)
    })
  } catch (error) {
    const problem = asProblem(error)
    if (problem === undefined) throw error
    return items.map((item) => ('problem' in item ? refusedResult(item) : failedResult(item, problem, context)))
  }
}

async function storeThreads(threads: Thread[], jobId: string, run: ImportRun): Promise<(Receipt | null)[]> {
  const { replica: replyTo, wait: waitFor } = run.deps.replyListener
  const { signal } = run.context
  const waitMs = run.deps.limits.waitSeconds * 1000
  const wait = waitFor(jobId, waitMs, signal)
  const enqueuing = enqueuePatiently({ threads, retained: false, replyTo }, jobId, run)
  run.enqueued = enqueuing.catch(() => {})
  try {
    // A result proves that the job was accepted, even if Redis did not confirm it.
    let result = await Promise.race([wait.result, enqueuing])
    if (result === undefined) await enqueuing
    result ??= await wait.result
    // The deadline is for an import that makes no progress.
    while (result === undefined && !signal.aborted && Date.now() - run.movedAt < waitMs)
      result = await waitFor(jobId, waitMs, signal, { lookUpAtOnce: true }).result
    if (result === undefined) throw itemPending(jobId)
    run.movedAt = Date.now()
    return result.receipts
  } finally {
    wait.cancel()
  }
}

// The first and the longest pause between two tries.
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2_000

/**
 * Enqueues a job. While the queue is full or the key's quota is used up, tries again until the import made no progress
 * for `waitSeconds`.
 *
 * @throws what `Enqueuer.enqueue` throws.
 */
export async function enqueuePatiently(
  job: Omit<IngestJob, 'tenant' | 'stamp' | 'requestId'>,
  jobId: string,
  run: ImportRun,
): Promise<undefined> {
  const { deps, context } = run
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      await enqueueJob(deps, context, jobId, 'bulk', job)
      run.movedAt = Date.now()
      return
    } catch (error) {
      const isRefusal = error instanceof QueueFullError || error instanceof RateLimitedError
      const isOver = context.signal.aborted || Date.now() - run.movedAt >= deps.limits.waitSeconds * 1000
      if (!isRefusal || isOver) throw error
      await delay(pauseMs * (0.5 + Math.random()), undefined, { signal: context.signal }).catch(() => {})
    }
  }
}

/** The result of one item, as JSON, and how it counts. */
export interface ItemResult {
  outcome: Outcome | 'failed'
  json: string
}

function storedResult(
  { index, thread, warnings }: ThreadItem,
  tenant: string,
  { source, outcomes }: Receipt,
): ItemResult {
  const { externalId } = thread.source
  const { outcome, wordCount } = source
  const count = (letter: string) => outcomes.split(letter).length - 1
  const quotes = { created: count('c'), updated: count('u'), unchanged: count('=') }
  const id = sourceIdOf(tenant, thread.source)
  const stored: StoredItem = { index, externalId, status: 200, outcome, id, wordCount, quotes }
  return { outcome, json: JSON.stringify(warnings === undefined ? stored : { ...stored, warnings }) }
}

function refusedResult({ problem, ...fields }: RefusedItem): ItemResult {
  return { outcome: 'failed', json: `${JSON.stringify(fields).slice(0, -1)},"problem":${problem}}` }
}

function failedResult(
  { thread, ...item }: ThreadItem,
  problem: ProblemError,
  { requestId }: { requestId: string },
): ItemResult {
  return refusedResult(refuseItem(item, itemProblem(problem, requestId), thread.source.externalId))
}

export function emptySummary(): ImportSummary {
  return { received: 0, created: 0, updated: 0, unchanged: 0, failed: 0 }
}

export function addResults(summary: ImportSummary, results: readonly ItemResult[]): void {
  summary.received += results.length
  for (const { outcome } of results) summary[outcome] += 1
}
