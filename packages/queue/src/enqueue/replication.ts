// Waits until replicas have what Redis has confirmed, so that a failover does not lose it.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'
import { AcceptanceUnknownError } from '../load/refusals.ts'
import { serverOf } from '../redis/primary.ts'
import { createGroupCommit } from '../redis/script.ts'

export type Replication = ReturnType<typeof openReplication>

const WAIT_MS = 1_000

/**
 * Lets callers wait for this many replicas. If there are any, it opens a connection like `redis`, which fails fast,
 * because WAIT blocks. Callers that wait at a time share one WAIT.
 */
export function openReplication(redis: Redis, { base }: QueueKeys, replicas: number, onError: (error: Error) => void) {
  const own = replicas > 0 ? redis.duplicate().on('error', onError) : undefined
  /** Returns whether enough replicas have everything, and for each time whether Redis is the same server since then. */
  const areReached = createGroupCommit(async (times: number[]) => {
    // WAIT waits for the last write of its own connection, and so for all that came before.
    await own?.set(`${base}replicated`, '')
    const reached = (await own?.wait(replicas, WAIT_MS)) ?? 0
    return times.map((since) => reached >= replicas && serverOf(redis).since < since)
  })
  return {
    /**
     * Resolves when the replicas have a job that was enqueued after `since`, on the monotonic clock, in ms; without
     * replicas to wait for, at once.
     *
     * @throws {AcceptanceUnknownError} if they do not have it within a second, or Redis has become another server.
     */
    async confirm(jobId: string, since: number): Promise<void> {
      if (own && !(await areReached(since).catch(() => false))) throw new AcceptanceUnknownError(jobId)
    },
    close: () => own?.disconnect(),
  }
}
