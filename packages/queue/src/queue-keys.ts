/** Where one queue's things lie in Redis. All of them share a hash tag, so that a cluster keeps them on one node and scripts may touch several. */
export interface QueueKeys {
  /** BullMQ's own prefix. */
  prefix: string
  /** What stands before everything of the queue, BullMQ's jobs (`base + id`) included. */
  base: string
}

/** Names the keys of a queue. */
export function queueKeys(queue: string): QueueKeys {
  return { prefix: `{${queue}}`, base: `{${queue}}:${queue}:` }
}
