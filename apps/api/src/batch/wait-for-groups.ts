import type { Thread } from '@sluice/contract'
import { newJobId } from '@sluice/queue'
import type { Call } from '../call.ts'
import { enqueue } from '../enqueue.ts'
import type { JobParts } from '../job-parts.ts'
import { jobFailed } from '../post-source.ts'
import { ProblemError } from '../problem-error.ts'
import type { BatchGroup } from './batch-group.ts'
import { itemProblem, refuseItem } from './batch-item.ts'
import { type ItemResult, refusedItem, storedItem } from './batch-results.ts'

export type GroupParts = Pick<JobParts, 'enqueuer' | 'room' | 'metrics' | 'stopping'> & { waitSeconds: number }

/** How many jobs of one batch may be under way, and about how many bytes of results may wait for those before them. */
const JOBS_UNDER_WAY = 8
const RESULT_BYTES_WAITING = 4 * 1024 * 1024

/** The groups of one batch, on their way through the queue and back. */
export interface UnderWay {
  /** Takes a group on; resolves when there is room for another. */
  submit(group: BatchGroup): Promise<void>
  isIdle(): boolean
  /** Resolves when everything that was submitted has been handed on. */
  finish(): Promise<void>
}

/**
 * Has groups stored and hands their results on in the order of the input. How far the input runs ahead is bounded by jobs and bytes, never by who
 * reads the results.
 */
export function waitForGroups(parts: GroupParts, call: Call, hand: (results: ItemResult[]) => Promise<void>): UnderWay {
  let jobs = 0
  let resultBytes = 0
  let handing: Promise<void> = Promise.resolve()
  let onRoom = () => {}
  const progress = { at: Date.now() }

  function submitted(group: BatchGroup): Promise<ItemResult[]> {
    jobs += 1
    resultBytes += group.resultBytes
    return storeGroup(parts, call, group, progress).finally(() => {
      jobs -= 1
      progress.at = Date.now()
      onRoom()
    })
  }

  return {
    isIdle: () => jobs === 0,
    async submit(group) {
      const stored = submitted(group)
      stored.catch(() => {}) // told by `handing`, unless that has failed before
      handing = handing.then(async () => {
        await hand(await stored)
        resultBytes -= group.resultBytes
        onRoom()
      })
      handing.catch(() => onRoom())
      while (jobs >= JOBS_UNDER_WAY || resultBytes >= RESULT_BYTES_WAITING) {
        await Promise.race([new Promise<void>((resolve) => (onRoom = resolve)), handing])
      }
    },
    finish: () => handing,
  }
}

async function storeGroup(
  parts: GroupParts,
  call: Call,
  group: BatchGroup,
  progress: { at: number },
): Promise<ItemResult[]> {
  try {
    const receipts = group.threads.length === 0 ? [] : await storeThreads(parts, call, group, progress)
    let place = 0
    return group.items.map((item) => {
      if ('problem' in item) return refusedItem(item)
      const receipt = receipts[place++]
      if (receipt) return storedItem(item.index, call.tenant, item.thread, receipt)
      return notStored(item, jobFailed(), call)
    })
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    return group.items.map((item) => ('problem' in item ? refusedItem(item) : notStored(item, error, call)))
  }
}

function notStored(
  { index, thread }: { index: number; thread: Thread },
  error: ProblemError,
  { requestId }: Call,
): ItemResult {
  return refusedItem(refuseItem(index, itemProblem(error, requestId), thread.source.externalId))
}

async function storeThreads(parts: GroupParts, call: Call, { threads }: BatchGroup, progress: { at: number }) {
  const jobId = newJobId()
  const { room, stopping, waitSeconds } = parts
  let wait = room.wait(jobId, waitSeconds * 1000)
  const leave = () => wait.cancel()
  stopping.addEventListener('abort', leave)
  call.response.once('close', leave)
  try {
    await enqueue(parts, call, jobId, 'bulk', { threads, retained: false, replyTo: room.replica })
    for (;;) {
      if (stopping.aborted || call.response.closed) leave()
      const result = await wait.result
      if (result !== undefined) return result.receipts
      // The deadline is for a batch that stands still, not for one that moves.
      const standsStill = Date.now() - progress.at >= waitSeconds * 1000
      if (standsStill || stopping.aborted || call.response.closed) throw stillPending()
      wait = room.wait(jobId, waitSeconds * 1000, { replyComes: false })
    }
  } finally {
    leave()
    stopping.removeEventListener('abort', leave)
    call.response.off('close', leave)
  }
}

function stillPending(): ProblemError {
  const detail = 'The job goes on. Posting the same again is safe, until something newer was posted.'
  return new ProblemError('job_pending', { detail })
}
