import { type BatchProblem, newJobId, PROBLEMS_KEPT } from '@sluice/queue'
import type { Call } from '../call.ts'
import { enqueue } from '../enqueue.ts'
import type { JobParts } from '../job-parts.ts'
import type { BatchGroup } from './batch-group.ts'

/** What was put into the queue of a batch that nobody waits for. */
export interface Enqueued {
  received: number
  jobs: number
  failed: number
  /** What was refused, at most as much as is told of it. */
  refused: BatchProblem[]
}

/** Puts the groups of a batch into the queue, one after the other. */
export function enqueueGroups(parts: Pick<JobParts, 'enqueuer' | 'metrics'>, call: Call, batchId: string) {
  const enqueued: Enqueued = { received: 0, jobs: 0, failed: 0, refused: [] }
  return {
    enqueued,
    async submit({ items, threads }: BatchGroup): Promise<void> {
      enqueued.received += items.length
      for (const item of items) {
        if (!('problem' in item)) continue
        enqueued.failed += 1
        const { index, problem, externalId } = item
        const named = externalId === undefined ? { index } : { index, externalId }
        if (enqueued.refused.length < PROBLEMS_KEPT) enqueued.refused.push({ ...named, refused: problem })
      }
      if (threads.length === 0) return
      const places = items.flatMap((item) => ('thread' in item ? [item.index] : []))
      await enqueue(parts, call, newJobId(), 'bulk', { threads, told: false, batch: { id: batchId, places } })
      enqueued.jobs += 1
    },
  }
}
