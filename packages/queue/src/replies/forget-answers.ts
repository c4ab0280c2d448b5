// Removes what Redis would answer about threads that are stored, for a MongoDB that was restored to an earlier moment.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'

const KEYS_AT_ONCE = 1_000

/**
 * Claims of idempotency keys, results of completed jobs, and imports, with their bounded stores. The list of the jobs that
 * completed last stays: it says what happened, and so what to post again. Jobs stay, too.
 */
const ANSWERS = /^(claims?|results|newest-results|transient|retained|imports?)(:|$)/

/**
 * Removes them in steps of about a millisecond, and returns how many keys of Redis there were. No process may answer or
 * complete jobs meanwhile. If it is interrupted, call it again.
 */
export async function forgetAnswers(redis: Redis, { base }: QueueKeys): Promise<number> {
  let removed = 0
  for (let cursor: string | undefined; cursor !== '0'; ) {
    const [next, keys] = await redis.scan(cursor ?? '0', 'MATCH', `${base}*`, 'COUNT', KEYS_AT_ONCE)
    const answers = keys.filter((key) => ANSWERS.test(key.slice(base.length)))
    if (answers.length > 0) removed += await redis.unlink(answers)
    cursor = next
  }
  return removed
}
