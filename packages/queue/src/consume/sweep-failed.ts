// Ends what workers did not live to do for jobs that failed for good.
import type { Lane } from '../job/job.ts'
import { asList, openScript } from '../redis/script.ts'
import type { LaneDeps } from './lane-deps.ts'

/** How often a worker looks for such jobs, in ms. */
const SWEEP_EVERY_MS = 5_000
/** Jobs that one sweep looks at, in less than a millisecond. */
const SWEPT_AT_ONCE = 500
/** After this time the worker of a failed job is dead, or so slow that both record the failure, which does no harm. */
const OVERDUE_MS = 5_000

/**
 * Looks at some failed jobs of a lane again and again, until the returned function is called. A worker that died after
 * BullMQ kept its job as failed has left no result, so that imports and callers wait, and a job that counts as load for
 * ever.
 */
export function startSweeps(lane: Lane, { keys, redis, find, recordFailure, onError }: LaneDeps): () => void {
  const findUnrecorded = openScript(redis, new URL('../failed/failed-set.lua#unrecorded', import.meta.url))
  let cursor = '0'

  async function finish(id: string): Promise<void> {
    const { data, finishedOn: failedAt, failedReason: failure = '' } = (await find(id)) ?? {}
    // The job was retried meanwhile.
    if (data === undefined || failedAt === undefined) return
    await recordFailure({ id, lane, data, failedAt, result: { receipts: data.threads.map(() => null), failure } })
  }

  async function sweep(): Promise<void> {
    const reply = await findUnrecorded(keys.base, keys.jobs[lane], cursor, SWEPT_AT_ONCE, OVERDUE_MS)
    const [next, ids] = asList(reply)
    for (const id of asList(ids)) await finish(String(id))
    cursor = String(next)
  }

  const timer = setInterval(() => void sweep().catch(onError), SWEEP_EVERY_MS)
  return () => clearInterval(timer)
}
