// Stores the groups of an import whose caller waits, several at a time, and hands on their results in order.
import { newJobId, type Receipt } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import { asProblem, itemPending, jobFailed, type ProblemError } from '../problems.ts'
import type { RequestContext } from '../request-context.ts'
import { createPatientEnqueuer, type EnqueueGroupDeps, type Progress } from './enqueue-group.ts'
import type { ImportGroup, Submit } from './group-items.ts'
import {
  type ItemResult,
  itemProblem,
  refusedResult,
  refuseItem,
  storedResult,
  type ThreadItem,
} from './import-items.ts'

export type PipelineDeps = EnqueueGroupDeps & Pick<ApiDeps, 'replyListener'>
type PipelineContext = Pick<RequestContext, 'tenant' | 'requestId' | 'quota' | 'response'>

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
  { response }: PipelineContext,
  jobId: string,
  { threads }: ImportGroup,
): Promise<(Receipt | null)[]> {
  const { replyListener, graceOver, progress, enqueue } = deps
  const waitMs = deps.limits.waitSeconds * 1000
  let wait = replyListener.wait(jobId, waitMs)
  const cancel = () => wait.cancel()
  graceOver.addEventListener('abort', cancel)
  response.once('close', cancel)
  try {
    const enqueuing = enqueue(jobId, { threads, retained: false, replyTo: replyListener.replica })
    let result = await Promise.race([wait.result, enqueuing])
    if (result === undefined) await enqueuing
    for (;;) {
      const isOver = () => graceOver.aborted || response.closed
      if (isOver()) cancel()
      result ??= await wait.result
      if (result !== undefined) {
        progress.at = Date.now()
        return result.receipts
      }
      // The deadline is for an import that makes no progress.
      if (isOver() || Date.now() - progress.at >= waitMs) throw itemPending(jobId)
      wait = replyListener.wait(jobId, waitMs, { lookUpAtOnce: true })
    }
  } finally {
    cancel()
    graceOver.removeEventListener('abort', cancel)
    response.off('close', cancel)
  }
}
