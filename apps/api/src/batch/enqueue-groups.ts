import { type ImportProblem, newJobId, PROBLEMS_KEPT } from '@sluice/queue'
import type { Call } from '../call.ts'
import { enqueue } from '../enqueue.ts'
import type { JobParts } from '../job-parts.ts'
import type { BatchGroup } from './batch-group.ts'
import type { RefusedItem } from './batch-item.ts'

/** What was put into the queue of a batch that nobody waits for. */
export interface Enqueued {
  received: number
  jobs: number
  failed: number
  /** The first of what was refused, at most as much as is told of it. */
  refused: ImportProblem[]
}

/** Puts the groups of a batch into the queue, one after the other. */
export function enqueueGroups(parts: Pick<JobParts, 'enqueuer' | 'metrics'>, call: Call, batchId: string) {
  const enqueued: Enqueued = { received: 0, jobs: 0, failed: 0, refused: [] }
  const keep = createKeeper(enqueued.refused)
  return {
    enqueued,
    async submit({ items, threads }: BatchGroup): Promise<void> {
      if (threads.length > 0) {
        const places = items.flatMap((item) => ('thread' in item ? [item.index] : []))
        await enqueue(parts, call, newJobId(), 'bulk', { threads, retained: false, import: { id: batchId, places } })
        enqueued.jobs += 1
      }
      enqueued.received += items.length
      enqueued.failed += items.length - threads.length
      for (const item of items) if ('problem' in item) keep(item)
    },
  }
}

/** What is kept in Redis of the problems of one batch, in bytes, and of one item's faults. */
const PROBLEM_BYTES_KEPT = 1024 * 1024
const FAULTS_KEPT = 5

function createKeeper(kept: ImportProblem[]): (item: RefusedItem) => void {
  let isFull = false
  let bytes = 0
  return ({ index, externalId, problem }) => {
    if (isFull) return
    const refused = shortened(problem)
    const told = externalId === undefined ? { index, refused } : { index, externalId, refused }
    bytes += Buffer.byteLength(JSON.stringify(told))
    isFull = bytes > PROBLEM_BYTES_KEPT || kept.length === PROBLEMS_KEPT
    if (!isFull) kept.push(told)
  }
}

/** The problem with its first few faults; its `total` says how many there are. */
function shortened(text: string): unknown {
  const problem = JSON.parse(text)
  return problem.errors === undefined ? problem : { ...problem, errors: problem.errors.slice(0, FAULTS_KEPT) }
}
