// Lets the callers of one API replica wait for the results of their jobs.
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import { readRedisTime, serverOf } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import type { JobResult } from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'
import { AcceptanceUnknownError } from '../load/refusals.ts'
import type { Results } from './results.ts'

export type ReplyListener = ReturnType<typeof openReplyListener>

const BLOCK_MS = 1_000
/**
 * The `silentMs` of the reader (see `connectLike`): its connection counts as dead if a read takes
 * twice as long as it should.
 */
export const REPLY_SILENT_MS = 2 * BLOCK_MS

/**
 * A reply is overdue `OVERDUE_MS` after its wait began. Its result is then looked up every
 * `LOOK_UP_EVERY_MS`.
 */
const OVERDUE_MS = 1_000
const LOOK_UP_EVERY_MS = 500

const LIST_EVERY_MS = 600_000

interface Waiter {
  /**
   * When the wait becomes overdue, on the monotonic clock, in ms. From then on, the result is
   * looked up.
   */
  overdueAt: number
  settle: (result: JobResult | undefined) => void
  /** Called if Redis does not know the job: a job that was accepted was lost. */
  lose: () => void
}

/**
 * Reads one reply stream for all waiting callers of a replica, on a connection that blocks. Looks
 * up the results whose replies are overdue.
 */
export function openReplyListener(
  replica: string,
  keys: QueueKeys,
  reader: Redis,
  results: Pick<Results, 'find'>,
) {
  const waiters = new Map<string, Set<Waiter>>()
  const stream = `${keys.base}replies:${replica}`
  const closing = new AbortController()
  let lastReadAt = Number.NEGATIVE_INFINITY
  let listedAt = Number.NEGATIVE_INFINITY
  let last = '0'
  let server = ''
  reader.once('ready', noteRead)
  reader.on('ready', () => {
    // Another server's stream may lack the last entries, and give new entries lower ids. Read it
    // from its beginning.
    const { id } = serverOf(reader)
    if (id !== server) last = '0'
    server = id
    listedAt = Number.NEGATIVE_INFINITY
  })

  function noteRead(): void {
    lastReadAt = performance.now()
  }

  function settleJob(jobId: string, result: JobResult | undefined): void {
    const ofJob = waiters.get(jobId)
    waiters.delete(jobId)
    for (const waiter of ofJob ?? []) waiter.settle(result)
  }

  async function readReplies(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        // Deletions find the stream by this list: see purge.lua.
        if (performance.now() - listedAt > LIST_EVERY_MS) {
          await reader.zadd(`${keys.base}replicas`, await readRedisTime(reader), replica)
          listedAt = performance.now()
        }
        const replies = await reader.xread('COUNT', 500, 'BLOCK', BLOCK_MS, 'STREAMS', stream, last)
        noteRead()
        for (const [id, fields] of replies?.[0]?.[1] ?? []) {
          last = id
          await readEntry(fields)
        }
        // Answer the callers that got their results before the next read.
        await setImmediate()
      } catch {
        // The connection reconnects by itself, and its own listener logs the error. Until then,
        // results are looked up.
        await delay(100, undefined, { signal: closing.signal }).catch(() => {})
      }
    }
  }

  /**
   * Reads an entry, a flat list of job id and result. An empty result stands for a large result or
   * a final failure: look it up.
   */
  async function readEntry(fields: string[]): Promise<void> {
    const large: string[] = []
    for (let at = 0; at < fields.length; at += 2) {
      const [jobId = '', result = ''] = fields.slice(at, at + 2)
      if (result === '') large.push(jobId)
      else settleJob(jobId, JSON.parse(result))
    }
    if (large.length > 0) await lookUp(large)
  }

  async function lookUp(jobIds: string[]): Promise<void> {
    const found = await results.find(jobIds)
    for (const jobId of jobIds) {
      const result = found.get(jobId)
      if (result !== undefined) settleJob(jobId, result)
      else if (!found.has(jobId))
        for (const waiter of [...(waiters.get(jobId) ?? [])]) waiter.lose()
    }
  }

  async function lookUpOverdue(): Promise<void> {
    const isOverdue = ({ overdueAt }: Waiter) => performance.now() >= overdueAt
    while (!closing.signal.aborted) {
      const ids = [...waiters].flatMap(([jobId, ofJob]) =>
        [...ofJob].some(isOverdue) ? [jobId] : [],
      )
      if (ids.length > 0) await lookUp(ids).catch(() => {})
      await delay(LOOK_UP_EVERY_MS, undefined, { signal: closing.signal }).catch(() => {})
    }
  }

  void lookUpOverdue()
  void readReplies()

  return {
    replica,
    awaitedJobs: () => waiters.size,
    /**
     * Returns whether the stream was read within `REPLY_SILENT_MS + BLOCK_MS`. If not, callers get
     * their results by look-ups, a second later.
     */
    isListening: () => performance.now() - lastReadAt < REPLY_SILENT_MS + BLOCK_MS,
    /**
     * Waits for a job. Call this before the job is enqueued, then `accepted` once it is accepted,
     * or `cancel` if no result will come. `result` resolves with undefined after `ms`, after
     * `cancel` or `close`, or when `signal` aborts. It rejects with `AcceptanceUnknownError` if
     * Redis does not know a job that was accepted.
     *
     * @param lookUpAtOnce look up the result immediately: the job was accepted earlier, and may not
     * reply to this replica.
     */
    wait(
      jobId: string,
      ms: number,
      signal: AbortSignal,
      { lookUpAtOnce } = { lookUpAtOnce: false },
    ) {
      const { promise: result, resolve, reject } = Promise.withResolvers<JobResult | undefined>()
      result.catch(() => {}) // Avoids an unhandled rejection: after another error, the caller awaits no result.
      let isAccepted = lookUpAtOnce
      const overdueAt = performance.now() + (lookUpAtOnce ? 0 : OVERDUE_MS)
      const waiter: Waiter = { overdueAt, settle, lose }
      const timer = setTimeout(cancel, ms)
      const ofJob = waiters.get(jobId) ?? new Set()
      waiters.set(jobId, ofJob.add(waiter))
      /** Ends the wait, with the job's result if it has one. */
      function settle(found: JobResult | undefined): void {
        clearTimeout(timer)
        signal.removeEventListener('abort', cancel)
        ofJob.delete(waiter)
        if (ofJob.size === 0 && waiters.get(jobId) === ofJob) waiters.delete(jobId)
        resolve(found)
      }
      function cancel(): void {
        settle(undefined)
      }
      function lose(): void {
        // Before it is enqueued, Redis can't know the job.
        if (!isAccepted) return
        reject(new AcceptanceUnknownError(jobId))
        cancel()
      }
      function accepted(): void {
        isAccepted = true
      }
      if (signal.aborted) cancel()
      else signal.addEventListener('abort', cancel)
      return { result, cancel, accepted }
    },
    async close(): Promise<void> {
      closing.abort()
      for (const jobId of [...waiters.keys()]) settleJob(jobId, undefined)
      // While Redis is unavailable, a blocked command never settles, so do not wait for it.
      reader.disconnect()
    },
  }
}
