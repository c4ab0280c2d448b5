// Stores several groups of an import at the same time, yields their results in the order of the
// input, and records the outcomes of the items, and the first problems, for operators.
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { PROBLEMS_KEPT, type Problem, type StoredItem } from '@sluice/contract'
import type { ImportEnd, ImportProblem, IngestJob, Receipt } from '@sluice/queue'
import { isJobId, newJobId, QueueFullError, RateLimitedError, sourceNameOf } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import type { ApiDeps } from '../api-deps.ts'
import { asProblem, itemPending, jobFailed, ProblemError } from '../request/problem-error.ts'
import type { RequestContext } from '../request/request-context.ts'
import { type EnqueueContext, enqueueJob } from '../sources/post-source.ts'
import {
  type ImportGroup,
  type ImportGroups,
  type RefusedItem,
  refuseItem,
  type ThreadItem,
} from './group-items.ts'

/** Counts the items whose results are known, by their outcome. */
type RunSummary = Record<'received' | 'failed', number> &
  Partial<Record<Receipt['source']['outcome'], number>>

/** The state of an import at its beginning. */
export function newRun(
  summary: RunSummary = { received: 0, created: 0, updated: 0, unchanged: 0, failed: 0 },
) {
  return {
    /** The number of jobs without a result. */
    jobs: 0,
    /**
     * The size of these jobs' threads, and the approximate size of all results that have not been
     * yielded.
     */
    bytes: 0,
    /** When a job was last enqueued or a result last arrived, on the monotonic clock, in ms. */
    movedAt: performance.now(),
    /** Resolves when the newest job was enqueued or refused. */
    enqueued: Promise.resolve<unknown>(undefined),
    summary,
    problems: createProblems(),
  }
}

/** An import in progress, and what storing it needs. */
export type ImportRun = ReturnType<typeof newRun> & {
  /** Why the newest job has not been accepted yet. */
  waitsFor?: ProblemError | undefined
  deps: Pick<ApiDeps, 'enqueuer' | 'metrics' | 'replyListener' | 'confirmReplicated'> & {
    settings: Pick<ApiDeps['settings'], 'waitSeconds'>
  }
  context: EnqueueContext & Pick<RequestContext, 'signal'>
}

const EVERY_MS = 1_000
/**
 * The most problems in a record that is made every second. The record at the end has all problems
 * that are kept.
 */
const PROBLEMS_AT_ONCE = 100

type RecordedRun = ImportRun & { deps: Pick<ApiDeps, 'imports' | 'log'>; context: RequestContext }

/**
 * Stores groups as `storeGroups` does. Also records the outcomes every second and at the end, each
 * time by one command of Redis. If the caller sent an Import-Id, they are recorded under it, so
 * that many requests are one import, otherwise under a new id.
 */
export async function* storeRecorded(
  groups: ImportGroups,
  run: RecordedRun,
): AsyncGenerator<string[]> {
  const { context, summary, problems, deps } = run
  const { 'import-id': sent } = context.request.headers
  const isPart = typeof sent === 'string' && isJobId(sent)
  const importId = isPart ? sent : newJobId()
  const request = {
    importId,
    tenant: context.tenant,
    by: context.key?.keyId ?? '',
    requestId: newJobId(),
  }
  context.log.importId = importId
  let ended: ImportEnd = 'cut'
  let isRecording = false

  async function record(isLast: boolean): Promise<void> {
    const { toComeAgain: again, kept } = problems
    const counts = {
      ...{ created: 0, updated: 0, unchanged: 0 },
      ...summary,
      failed: summary.failed - again,
      again,
      open: isLast ? (0 as const) : (1 as const),
    }
    const lately = { problems: kept.slice(0, PROBLEMS_AT_ONCE), waitsFor: run.waitsFor?.code }
    isRecording = true
    // If this fails, the import continues, and makes another record a second later.
    try {
      await context.checkKey?.()
      const known = { counts, ...(isLast ? { problems: kept } : lately) }
      await deps.imports.recordRequest({ ...request, ended }, known)
    } catch (err) {
      if (isLast) deps.log.error({ importId, err }, 'import.not_recorded')
    }
    isRecording = false
  }

  const timer = setInterval(() => !isRecording && void record(false), EVERY_MS)
  try {
    yield* storeGroups(groups, run)
    if (context.request.complete && !context.signal.aborted) ended = isPart ? 'part' : 'whole'
  } finally {
    clearInterval(timer)
    // An earlier record may still be on its way. If it arrived last, it would replace the final
    // one.
    if (summary.received > 0 || isRecording) void record(true)
  }
}

// Bounds the input that is read ahead of the yielded results. A caller that reads no results does
// not stop the input, because its answer goes to a file.
const MAX_JOBS = 8
const MAX_BYTES = 3 * 1024 * 1024
const MAX_GROUPS = 1_000

/**
 * Stores groups, and yields the results of each group (each result as JSON) in the order of the
 * input.
 */
export async function* storeGroups(groups: ImportGroups, run: ImportRun): AsyncGenerator<string[]> {
  const { signal } = run.context
  const isFull = () => run.jobs >= MAX_JOBS || run.bytes >= MAX_BYTES
  // Resolves when a job is done, when results were yielded, or when nobody waits any more. It is
  // then replaced by a new one.
  let change = Promise.withResolvers<void>()
  function noteChange(): void {
    change.resolve()
    change = Promise.withResolvers()
  }
  signal.addEventListener('abort', noteChange)

  /** Begins to store each group while there is room, and yields a promise of its results. */
  async function* startGroups() {
    for await (const group of groups) {
      run.jobs += 1
      run.bytes += group.bytes + group.resultBytes
      const results = storeGroup(group, run).finally(() => {
        run.jobs -= 1
        run.bytes -= group.bytes
        noteChange()
      })
      results.catch(() => {}) // The loop below reports the error, unless the import has ended.
      yield { results, bytes: group.resultBytes }
      // If a job overtook a refused one, items with the same externalId would be accepted out of
      // order.
      await run.enqueued
      while (isFull() && !signal.aborted) await change.promise
    }
  }

  // A Readable reads ahead, unlike a generator: groups start while the results of earlier ones are
  // awaited.
  const started = Readable.from(startGroups(), { highWaterMark: MAX_GROUPS })
  for await (const { results, bytes } of started) {
    yield await results
    run.bytes -= bytes
    noteChange()
  }
}

async function storeGroup({ items, threads }: ImportGroup, run: ImportRun): Promise<string[]> {
  const receipts = (threads.length === 0 ? [] : await storeThreads(threads, run)).values()
  run.summary.received += items.length
  return items.map((item) => {
    if ('thread' in item) return resultOf(item, receipts.next().value ?? jobFailed(), run)
    run.summary.failed += 1
    run.problems.keep(item)
    return item.result
  })
}

/**
 * Returns the result of an item, from its thread's receipt or from the problem because of which it
 * was not stored.
 */
function resultOf(item: ThreadItem, receipt: Receipt | ProblemError, run: ImportRun): string {
  const { context, summary } = run
  const { index, thread, warnings } = item
  const externalId = 'source' in thread ? thread.source.externalId : undefined
  if (receipt instanceof ProblemError) {
    summary.failed += 1
    const refused = refuseItem(item, receipt, context.requestId, externalId)
    run.problems.keep(refused)
    return refused.result
  }
  const isPost = 'outcomes' in receipt
  // A post that came too late for a deletion changes nothing.
  const counted =
    isPost && receipt.source.outcome === 'deleted' ? 'unchanged' : receipt.source.outcome
  summary[counted] = (summary[counted] ?? 0) + 1
  if (!isPost || 'deletes' in thread)
    return JSON.stringify({ index, status: 200, ...receipt.source })
  const { outcome, wordCount } = receipt.source
  const count = (letter: string) => receipt.outcomes.split(letter).length - 1
  const quotes = {
    created: count('c'),
    updated: count('u'),
    unchanged: count('=') + count('d'),
    ...(count('s') > 0 && { suppressed: count('s') }),
  }
  const id = sourceIdOf(context.tenant, thread.source)
  const stored: StoredItem = {
    index,
    externalId: thread.source.externalId,
    status: 200,
    outcome,
    id,
    wordCount,
    quotes,
  }
  return JSON.stringify({ ...stored, warnings })
}

/**
 * Stores threads by one job. Returns a receipt for each thread, or the problem because of which it
 * was not stored.
 */
async function storeThreads(
  threads: ImportGroup['threads'],
  run: ImportRun,
): Promise<(Receipt | ProblemError)[]> {
  const jobId = newJobId(threads[0] && sourceNameOf(threads[0]).externalId)
  const { replica: replyTo, wait: waitFor } = run.deps.replyListener
  const { signal } = run.context
  const waitMs = run.deps.settings.waitSeconds * 1000
  const wait = waitFor(jobId, waitMs, signal)
  const began = performance.now()
  const enqueuing = enqueuePatiently({ threads, retained: false, replyTo }, jobId, run)
  run.enqueued = enqueuing.catch(() => {})
  try {
    // A result proves that the job was accepted, even if Redis has not confirmed it.
    let result = await Promise.race([wait.result, enqueuing])
    if (result === undefined) await enqueuing
    wait.accepted()
    result ??= await wait.result
    // Give up only if no job of the import was enqueued or completed for `waitMs`.
    while (result === undefined && !signal.aborted && performance.now() - run.movedAt < waitMs)
      result = await waitFor(jobId, waitMs, signal, { lookUpAtOnce: true }).result
    if (result === undefined) {
      await run.deps.confirmReplicated(jobId, began)
      throw itemPending(jobId)
    }
    run.movedAt = performance.now()
    return result.receipts.map((receipt) => receipt ?? jobFailed(jobId))
  } catch (error) {
    const problem = asProblem(error)
    if (problem === undefined) throw error
    return threads.map(() => problem)
  } finally {
    wait.cancel()
  }
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2_000

/**
 * Enqueues a job. If the queue is full or the quota is used up, tries again until the import has
 * made no progress for `waitSeconds`.
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
      run.movedAt = performance.now()
      run.waitsFor = undefined
      return
    } catch (error) {
      const isRefusal = error instanceof QueueFullError || error instanceof RateLimitedError
      const isOver =
        context.signal.aborted ||
        performance.now() - run.movedAt >= deps.settings.waitSeconds * 1000
      if (!isRefusal || isOver) throw error
      run.waitsFor = asProblem(error)
      await delay(pauseMs * (0.5 + Math.random()), undefined, { signal: context.signal }).catch(
        () => {},
      )
    }
  }
}

/**
 * Bounds the problems of an import that Redis keeps: their bytes together, and the validation
 * errors of each item.
 */
const PROBLEM_BYTES_KEPT = 1024 * 1024
const ERRORS_KEPT = 5

/** Keeps the first problems of an import, and counts the items that may be posted again. */
function createProblems() {
  const kept: ImportProblem[] = []
  let bytes = 0
  const problems = {
    kept,
    toComeAgain: 0,
    keep({ result, mayComeAgain }: RefusedItem): void {
      if (mayComeAgain) {
        problems.toComeAgain += 1
        return
      }
      if (bytes > PROBLEM_BYTES_KEPT || kept.length === PROBLEMS_KEPT) return
      const { index, line, externalId, problem } = JSON.parse(result)
      const { code, jobId } = problem
      const item: ImportProblem = { index, line, externalId }
      if (code === 'job_failed' && jobId !== undefined) item.jobId = jobId
      else item.refused = shorten(problem)
      bytes += Buffer.byteLength(JSON.stringify(item))
      if (bytes <= PROBLEM_BYTES_KEPT) kept.push(item)
    },
  }
  return problems
}

/** Returns the problem with only its first few errors. Its `total` counts all of them. */
function shorten(problem: Problem): Problem {
  return problem.errors === undefined
    ? problem
    : { ...problem, errors: problem.errors.slice(0, ERRORS_KEPT) }
}
