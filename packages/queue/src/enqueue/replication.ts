// Waits until Redis's replicas have a confirmed job, so that a failover does not lose it.
import { createGroupCommit } from '@sluice/process'
import { serverOf } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../job/lanes.ts'
import { AcceptanceUnknownError } from '../load/refusals.ts'

export type Replication = ReturnType<typeof openReplication>

const WAIT_MS = 1_000

/** Lets callers wait until this number of replicas has their jobs: on a connection of its own, because WAIT blocks. */
export function openReplication(redis: Redis, { base }: QueueKeys, replicas: number, onError: (error: Error) => void) {
  const own = replicas > 0 ? redis.duplicate().on('error', onError) : undefined
  /** Returns for each time whether enough replicas have all writes, and Redis has been the same server since then. */
  const areReached = createGroupCommit(async (times: number[]) => {
    // WAIT waits only for the writes of its own connection. A replica that has this write has all writes before it.
    await own?.set(`${base}replicated`, '')
    const reached = (await own?.wait(replicas, WAIT_MS)) ?? 0
    return times.map((since) => reached >= replicas && serverOf(redis).since < since)
  })
  return {
    /**
     * Resolves when enough replicas have the job.
     *
     * @param since a moment before the job was enqueued, on the monotonic clock, in ms.
     * @throws {AcceptanceUnknownError} if they do not have it within a second, or Redis has become another server.
     */
    async confirm(jobId: string, since: number): Promise<void> {
      if (own && !(await areReached(since).catch(() => false))) throw new AcceptanceUnknownError(jobId)
    },
    close: () => own?.disconnect(),
  }
}
