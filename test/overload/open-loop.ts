// Posts at a fixed rate whatever the answers do, as independent callers do, each on a connection of
// its own unless one is idle.
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { type aThread, type Posted, postThread, type Target } from '../support/post-thread.ts'

interface OpenLoop extends Target {
  /** Requests a second. */
  rate: number
  seconds: number
  /** Makes the next request. */
  next: () => { thread: ReturnType<typeof aThread>; prefer?: string }
}

/** How often the loop sends what is due, in ms. */
const TICK_MS = 5
/**
 * As many as wait to be accepted while the API is busy. More callers share these, as behind a
 * balancer.
 */
const MAX_CONNECTIONS = 4_000
/**
 * If the loop itself was late by more, it goes on from there: to catch up would be a flood, beyond
 * the rate.
 */
const LATE_MS = 250

/** Resolves with the ledger once every request has its answer, or its connection is broken. */
export async function openLoop({ rate, seconds, next, ...target }: OpenLoop): Promise<Posted[]> {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 64, maxSockets: MAX_CONNECTIONS })
  let tickedAt = performance.now()
  let sentMs = 0
  const posting: Promise<Posted>[] = []
  while (posting.length < rate * seconds) {
    const now = performance.now()
    sentMs = Math.min(seconds * 1000, sentMs + Math.min(LATE_MS, now - tickedAt))
    tickedAt = now
    const due = (sentMs / 1000) * rate
    while (posting.length < due) posting.push(post({ ...target, agent }, next()))
    await pause(TICK_MS)
  }
  const posted = await Promise.all(posting)
  agent.destroy()
  return posted
}

/** Keeps the body of a problem only: those of many answers would fill the memory. */
async function post(
  target: Target,
  { thread, prefer }: ReturnType<OpenLoop['next']>,
): Promise<Posted> {
  const posted = await postThread(target, thread, prefer)
  return typeof posted.status === 'number' && posted.status < 400 ? { ...posted, body: {} } : posted
}
