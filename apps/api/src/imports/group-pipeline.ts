// Enqueues the groups of an import in their order, waits while the queue accepts no more, and hands on the results of those whose caller waits.
import { setTimeout as delay } from 'node:timers/promises'
import { type IngestJob, newJobId, QueueFullError, RateLimitedError, type Receipt } from '@sluice/queue'
import type { ApiDeps, ApiLimits } from '../api-deps.ts'
import { asProblem, itemPending, jobFailed, type ProblemError } from '../request/problem-error.ts'
import type { RequestContext } from '../request/request-context.ts'
import { enqueueJob } from '../sources/post-source.ts'
import {
  type ImportGroup,
  type ItemResult,
  itemProblem,
  refusedResult,
  refuseItem,
  type Submit,
  storedResult,
  type ThreadItem,
} from './import-items.ts'

export type PipelineDeps = EnqueueGroupDeps & Pick<ApiDeps, 'replyListener'>
type PipelineContext = Pick<RequestContext, 'tenant' | 'requestId' | 'quota' | 'signal'>

/** The bounds of one import: its jobs in progress, the size of their threads' texts, and the approximate size of results that wait for earlier ones, in bytes. */
const JOBS_IN_PROGRESS = 8
const BYTES_IN_PROGRESS = 2 * 1024 * 1024
const RESULT_BYTES_WAITING = 1024 * 1024

/** The groups of one import, on their way through the queue and back. */
export interface GroupPipeline {
  /** Resolves when the pipeline has room for another group. */
  submit: Submit
  isIdle(): boolean
  /** Resolves when the results of all groups were handed on. */
  finish(): Promise<void>
}

/** @param handOn takes results in the order of the input. Jobs and bytes bound how far the input runs ahead, never the reader of the results. */
export function openGroupPipeline(
  deps: PipelineDeps,
  context: PipelineContext,
  handOn: (results: ItemResult[]) => Promise<void>,
): GroupPipeline {
  let jobs = 0
  let bytes = 0
  let resultBytes = 0
  let handingOn: Promise<void> = Promise.resolve()
  let onRoom = () => {}
  const progress = { at: Date.now() }
  const stored: StoreDeps = { ...deps, progress, enqueue: createPatientEnqueuer(deps, context, progress) }

  function start(group: ImportGroup): Promise<ItemResult[]> {
    jobs += 1
    bytes += group.bytes
    resultBytes += group.resultBytes
    return storeGroup(stored, context, group).finally(() => {
      jobs -= 1
      bytes -= group.bytes
      onRoom()
    })
  }

  const isFull = () => jobs >= JOBS_IN_PROGRESS || bytes >= BYTES_IN_PROGRESS || resultBytes >= RESULT_BYTES_WAITING
  return {
    isIdle: () => jobs === 0,
    async submit(group) {
      const storing = start(group)
      storing.catch(() => {}) // `handingOn` reports it, unless it has failed before.
      handingOn = handingOn.then(async () => {
        await handOn(await storing)
        resultBytes -= group.resultBytes
        onRoom()
      })
      handingOn.catch(() => onRoom())
      while (isFull()) {
        await Promise.race([new Promise<void>((resolve) => (onRoom = resolve)), handingOn])
      }
    },
    finish: () => handingOn,
  }
}

type StoreDeps = PipelineDeps & { progress: Progress; enqueue: ReturnType<typeof createPatientEnqueuer> }

async function storeGroup(deps: StoreDeps, context: PipelineContext, group: ImportGroup): Promise<ItemResult[]> {
  const jobId = newJobId()
  try {
    const receipts = group.threads.length === 0 ? [] : await storeThreads(deps, context, jobId, group)
    let place = 0
    return group.items.map((item) => {
      if ('problem' in item) return refusedResult(item)
      const receipt = receipts[place++]
      return receipt ? storedResult(item, context.tenant, receipt) : failedResult(item, jobFailed(jobId), context)
    })
  } catch (error) {
    const problem = asProblem(error)
    if (problem === undefined) throw error
    return group.items.map((item) => ('problem' in item ? refusedResult(item) : failedResult(item, problem, context)))
  }
}

function failedResult(
  { thread, warnings: _, ...place }: ThreadItem,
  problem: ProblemError,
  { requestId }: PipelineContext,
): ItemResult {
  return refusedResult(refuseItem(place, itemProblem(problem, requestId), thread.source.externalId))
}

async function storeThreads(
  deps: StoreDeps,
  { signal }: PipelineContext,
  jobId: string,
  { threads }: ImportGroup,
): Promise<(Receipt | null)[]> {
  const { replyListener, progress, enqueue } = deps
  const waitMs = deps.limits.waitSeconds * 1000
  const wait = replyListener.wait(jobId, waitMs, signal)
  try {
    const enqueuing = enqueue(jobId, { threads, retained: false, replyTo: replyListener.replica })
    let result = await Promise.race([wait.result, enqueuing])
    if (result === undefined) await enqueuing
    result ??= await wait.result
    // The deadline is for an import that makes no progress.
    while (result === undefined && !signal.aborted && Date.now() - progress.at < waitMs)
      result = await replyListener.wait(jobId, waitMs, signal, { lookUpAtOnce: true }).result
    if (result === undefined) throw itemPending(jobId)
    progress.at = Date.now()
    return result.receipts
  } finally {
    wait.cancel()
  }
}

export type EnqueueGroupDeps = Pick<ApiDeps, 'enqueuer' | 'metrics'> & {
  limits: Pick<ApiLimits, 'waitSeconds'>
}

/** When an import last made progress, in ms since 1970. */
type Progress = { at: number }

/** The pauses between two attempts: the first, and the longest, in ms. */
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2_000

/**
 * Makes a function that enqueues jobs one after the other: if a later one overtook one that was refused, items of one externalId would be accepted in
 * another order than they were sent in.
 */
export function createPatientEnqueuer(
  deps: EnqueueGroupDeps,
  context: Pick<RequestContext, 'tenant' | 'requestId' | 'quota' | 'signal'>,
  progress: Progress,
) {
  let last: Promise<unknown> = Promise.resolve()

  async function enqueuePatiently(
    jobId: string,
    job: Omit<IngestJob, 'tenant' | 'stamp' | 'requestId'>,
  ): Promise<undefined> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        await enqueueJob(deps, context, jobId, 'bulk', job)
        progress.at = Date.now()
        return undefined
      } catch (error) {
        if (!mayTryAgain(error)) throw error
        await delay(pauseMs * (0.5 + Math.random()), undefined, { signal: context.signal }).catch(() => {})
      }
    }
  }

  function mayTryAgain(error: unknown): boolean {
    const isRefusal = error instanceof QueueFullError || error instanceof RateLimitedError
    return isRefusal && !context.signal.aborted && Date.now() - progress.at < deps.limits.waitSeconds * 1000
  }

  /** @throws what `Enqueuer.enqueue` throws; that the queue is full or the key's quota used up only after no progress for as long as a caller may wait. */
  return (jobId: string, job: Omit<IngestJob, 'tenant' | 'stamp' | 'requestId'>): Promise<undefined> => {
    const enqueuing = last.then(() => enqueuePatiently(jobId, job))
    last = enqueuing.catch(() => {})
    return enqueuing
  }
}
