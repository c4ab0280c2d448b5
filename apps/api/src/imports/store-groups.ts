// Stores the groups of an import beside each other, and yields their results in the order of the input.
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { ImportSummary, Outcome, StoredItem } from '@sluice/contract'
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

export type StoreDeps = EnqueueDeps & Pick<ApiDeps, 'replyListener'>
type ImportContext = Pick<RequestContext, 'tenant' | 'requestId' | 'quota' | 'signal'>

/** The state of an import in progress. */
export interface ImportProgress {
  /** The number of jobs without a result. */
  jobs: number
  /** The size of their threads, and the approximate size of all results that were not yielded. */
  bytes: number
  /** The time at which a job was enqueued or its result arrived, in milliseconds since the epoch. */
  at: number
  /** Resolves when the last job was enqueued or refused. */
  enqueued: Promise<unknown>
}

export function createProgress(): ImportProgress {
  return { jobs: 0, bytes: 0, at: Date.now(), enqueued: Promise.resolve() }
}

// Bounds of the input that is read before its results are yielded. A caller that reads no results stops no input.
const MAX_JOBS = 8
const MAX_BYTES = 3 * 1024 * 1024
const MAX_GROUPS = 1_000

/** Stores groups, and yields the results of each group in the order of the input. */
export async function* storeGroups(
  groups: ImportGroups,
  deps: StoreDeps,
  context: ImportContext,
  progress: ImportProgress,
): AsyncGenerator<ItemResult[]> {
  let room = Promise.withResolvers<void>()
  function release(bytes: number): void {
    progress.bytes -= bytes
    room.resolve()
    room = Promise.withResolvers()
  }
  context.signal.addEventListener('abort', () => room.resolve())
  const isFull = () => progress.jobs >= MAX_JOBS || progress.bytes >= MAX_BYTES

  async function* startGroups() {
    for await (const group of groups) {
      progress.jobs += 1
      progress.bytes += group.bytes + group.resultBytes
      const results = storeGroup(group, deps, context, progress).finally(() => {
        progress.jobs -= 1
        release(group.bytes)
      })
      results.catch(() => {}) // The loop below reports the error, unless the import has ended.
      yield { results, bytes: group.resultBytes }
      // If a job overtook a refused job, items of one externalId would be accepted out of order.
      await progress.enqueued
      while (isFull() && !context.signal.aborted) await room.promise
    }
  }

  // A Readable reads ahead, so groups start while earlier groups are in progress.
  for await (const { results, bytes } of Readable.from(startGroups(), { highWaterMark: MAX_GROUPS })) {
    yield await results
    release(bytes)
  }
}

async function storeGroup(
  { items, threads }: ImportGroup,
  deps: StoreDeps,
  context: ImportContext,
  progress: ImportProgress,
): Promise<ItemResult[]> {
  const jobId = newJobId()
  try {
    const receipts = threads.length === 0 ? [] : await storeThreads(threads, jobId, deps, context, progress)
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

async function storeThreads(
  threads: ImportGroup['threads'],
  jobId: string,
  deps: StoreDeps,
  context: ImportContext,
  progress: ImportProgress,
): Promise<(Receipt | null)[]> {
  const { replica: replyTo, wait: waitFor } = deps.replyListener
  const waitMs = deps.limits.waitSeconds * 1000
  const wait = waitFor(jobId, waitMs, context.signal)
  const enqueuing = enqueuePatiently({ threads, retained: false, replyTo }, jobId, deps, context, progress)
  progress.enqueued = enqueuing.catch(() => {})
  try {
    // A result proves that the job was accepted, even if Redis did not confirm it.
    let result = await Promise.race([wait.result, enqueuing])
    if (result === undefined) await enqueuing
    result ??= await wait.result
    // The deadline is for an import that makes no progress.
    while (result === undefined && !context.signal.aborted && Date.now() - progress.at < waitMs)
      result = await waitFor(jobId, waitMs, context.signal, { lookUpAtOnce: true }).result
    if (result === undefined) throw itemPending(jobId)
    progress.at = Date.now()
    return result.receipts
  } finally {
    wait.cancel()
  }
}

export type EnqueueDeps = Pick<ApiDeps, 'enqueuer' | 'metrics'> & { limits: Pick<ApiDeps['limits'], 'waitSeconds'> }

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
  deps: EnqueueDeps,
  context: ImportContext,
  progress: ImportProgress,
): Promise<undefined> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      await enqueueJob(deps, context, jobId, 'bulk', job)
      progress.at = Date.now()
      return
    } catch (error) {
      const isRefusal = error instanceof QueueFullError || error instanceof RateLimitedError
      const isOver = context.signal.aborted || Date.now() - progress.at >= deps.limits.waitSeconds * 1000
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
