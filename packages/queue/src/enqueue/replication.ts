// Waits until replicas have what Redis has confirmed, so that a failover does not lose it.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'
import { AcceptanceUnknownError } from '../load/refusals.ts'
import { serverOf } from '../redis/primary.ts'
import type { OnRedisError } from '../redis/redis-connections.ts'
import { createGroupCommit } from '../redis/script.ts'

export type BeginReplication = ReturnType<typeof openReplication>['begin']

const WAIT_MS = 1_000

/**
 * Opens a connection like `redis`, which fails fast, if so many replicas are to be waited for: WAIT blocks it. All
 * callers that wait share one WAIT.
 */
export function openReplication(redis: Redis, { base }: QueueKeys, replicas: number, onError: OnRedisError) {
  const own = replicas > 0 ? redis.duplicate().on('error', onError) : undefined
  /** Returns for each server whether it is still the one, and so many replicas have all that it has confirmed. */
  const areReached = createGroupCommit(async (servers: string[]) => {
    // WAIT waits for the last write of its own connection, and so for all that came before.
    await own?.set(`${base}replicated`, '')
    const reached = (await own?.wait(replicas, WAIT_MS)) ?? 0
    return servers.map((server) => reached >= replicas && server === serverOf(redis))
  })
  return {
    /**
     * Begins before a job is enqueued. The function that it returns resolves when the replicas have the job; without
     * replicas to wait for, at once.
     *
     * @throws {AcceptanceUnknownError} if they do not have it within a second, or Redis has become another server.
     */
    begin() {
      const server = serverOf(redis)
      return async (jobId: string): Promise<void> => {
        if (own && !(await areReached(server).catch(() => false))) throw new AcceptanceUnknownError(jobId)
      }
    },
    close: () => own?.disconnect(),
  }
}
