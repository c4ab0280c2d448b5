import { setImmediate } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { type Ending, parseEnding } from './ending.ts'
import type { QueueKeys } from './queue-keys.ts'
import type { Results } from './results.ts'

/** Where the callers of one API replica wait for their jobs. */
export interface WaitingRoom {
  /** The replica's name, for the jobs' `replyTo`. */
  replica: string
  /** How many wait now. */
  size(): number
  /**
   * Waits for a job that is enqueued after this call, or was before. Nothing within `ms` is `undefined`. `leave` ends the wait early.
   * Where no reply comes to this replica (`replyComes: false`) the ending is looked for from the start.
   */
  wait(
    jobId: string,
    ms: number,
    how?: { replyComes: boolean },
  ): { ending: Promise<Ending | undefined>; leave: () => void }
  /** Ends every wait and stops reading replies. */
  close(): Promise<void>
}

interface Waiter {
  since: number
  settle: (ending: Ending | undefined) => void
}

/** When no reply came for so long, it is looked for. */
const PATIENCE_MS = 1_000
const LOOK_EVERY_MS = 500
const LOOK_AT_ONCE = 200

/**
 * Reads one reply stream for all waiting callers of a replica. A stream keeps what comes while the replica is frozen or cut off, and whoever waits
 * for more than a second is looked up besides, so that a lost reply costs a second and never the answer.
 *
 * @param reader a patient connection of its own, because it blocks.
 */
export function openWaitingRoom(replica: string, keys: QueueKeys, reader: Redis, results: Results): WaitingRoom {
  const waiters = new Map<string, Set<Waiter>>()
  const stream = `${keys.base}replies:${replica}`
  let closed = false

  function settle(jobId: string, ending: Ending | undefined): void {
    const ofJob = waiters.get(jobId)
    waiters.delete(jobId)
    for (const waiter of ofJob ?? []) waiter.settle(ending)
  }

  async function readReplies(): Promise<void> {
    let last = '0'
    while (!closed) {
      try {
        const replies = await reader.xread('COUNT', 500, 'BLOCK', 5_000, 'STREAMS', stream, last)
        for (const [id, fields] of replies?.[0]?.[1] ?? []) {
          last = id
          await readEntry(fields)
        }
        // Those who got their replies answer first: asking for more holds up a process that nobody else keeps busy.
        await setImmediate()
      } catch {
        // The connection reconnects by itself, and its own listener logs it; meanwhile the looking finds what there is.
        if (!closed) await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
  }

  /** An entry holds a job's id and its ending in turn; one that is too large for it is looked for. */
  async function readEntry(fields: string[]): Promise<void> {
    for (let at = 0; at < fields.length; at += 2) {
      const [jobId = '', ending = ''] = fields.slice(at, at + 2)
      if (ending !== '') settle(jobId, parseEnding(ending))
      else await lookFor([jobId])
    }
  }

  async function lookFor(jobIds: string[]): Promise<void> {
    const found = await results.find(jobIds)
    for (const [jobId, ending] of found) settle(jobId, ending)
  }

  async function lookForOverdue(): Promise<void> {
    const overdue = [...waiters].filter(([, ofJob]) => [...ofJob].some(({ since }) => Date.now() - since > PATIENCE_MS))
    const ids = overdue.map(([jobId]) => jobId)
    for (let start = 0; start < ids.length; start += LOOK_AT_ONCE) await lookFor(ids.slice(start, start + LOOK_AT_ONCE))
  }

  let looking = false
  const look = setInterval(async () => {
    if (looking || waiters.size === 0) return
    looking = true
    await lookForOverdue().catch(() => {}) // Redis is away: the next look comes in half a second
    looking = false
  }, LOOK_EVERY_MS)
  void readReplies()

  return {
    replica,
    size: () => waiters.size,
    wait(jobId, ms, { replyComes } = { replyComes: true }) {
      const { promise, resolve } = Promise.withResolvers<Ending | undefined>()
      const waiter: Waiter = { since: replyComes ? Date.now() : 0, settle: done }
      const timer = setTimeout(() => done(undefined), ms)
      const ofJob = waiters.get(jobId) ?? new Set()
      waiters.set(jobId, ofJob.add(waiter))
      function done(ending: Ending | undefined): void {
        clearTimeout(timer)
        ofJob.delete(waiter)
        if (ofJob.size === 0 && waiters.get(jobId) === ofJob) waiters.delete(jobId)
        resolve(ending)
      }
      return { ending: promise, leave: () => done(undefined) }
    },
    async close() {
      closed = true
      clearInterval(look)
      for (const jobId of [...waiters.keys()]) settle(jobId, undefined)
      // A command that waits for a Redis that is away is never settled, so nobody waits for the reading to end.
      reader.disconnect()
    },
  }
}
