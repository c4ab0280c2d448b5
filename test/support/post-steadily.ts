// Posts threads from many callers, one after the other each, until told to stop.
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { TestScope } from '@sluice/test-support'
import { aThread, deleteThread, type Posted, postThread, type Target } from './post-thread.ts'
import { until } from './until.ts'

/** Callers that post until they are stopped. */
export interface Load {
  /** The answers so far, in their order. */
  posted: readonly Posted[]
  /** Resolves when this many more requests were answered with 200. */
  moreStored(count: number, withinMs?: number): Promise<unknown>
  /** Waits for each caller's last answer, and returns all answers. */
  stop(): Promise<readonly Posted[]>
}

/** The pause of a refused caller, so that it does not waste the machine's time. */
const AFTER_REFUSAL_MS = 50
/**
 * The pause of any caller. What counts is that some post at each moment, not how many: a test that
 * waits for a lock to expire leaves the machine to others.
 */
const REST_MS = 400

/**
 * Starts callers that post one thread after the other, each on one connection and by two posts: the
 * second adds quotes to the first, so that appends are interrupted too. They stop with the test at
 * the latest.
 *
 * @param restMs the pause after each answer.
 * @param prefer chooses the header Prefer of the next request.
 * @param deletes whether they delete every third thread, and post every sixth again.
 */
export function postSteadily(
  t: TestScope,
  target: Target,
  {
    callers = 16,
    restMs = REST_MS,
    prefer = (): string | undefined => undefined,
    deletes = true,
  } = {},
): Load {
  const posted: Posted[] = []
  let stopping = false

  async function call(_: unknown, at: number): Promise<void> {
    // A pool has idle connections, and a stopping API may close one as a request arrives. This one
    // is in use.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const caller = { ...target, agent }
    for (let turn = at; !stopping; turn++) {
      const thread = aThread()
      const { externalId } = thread
      await ask(() => postThread(caller, thread, prefer()))
      const again = (quotes: number) =>
        ask(() => postThread(caller, aThread({ externalId, quotes, from: 3 }), prefer()))
      await again(2)
      if (deletes && turn % 3 === 0) await ask(() => deleteThread(caller, externalId, prefer()))
      if (deletes && turn % 6 === 0) await again(1)
    }
    agent.destroy()
  }
  async function ask(send: () => Promise<Posted>): Promise<void> {
    if (stopping) return
    const answer = await send()
    posted.push(answer)
    const isAccepted = answer.status === 200 || answer.status === 202
    const ms = isAccepted ? restMs : Math.max(restMs, AFTER_REFUSAL_MS)
    if (ms > 0) await pause(ms)
  }

  const stored = () => posted.filter(({ status }) => status === 200).length
  const running = Array.from({ length: callers }, call)
  t.onTestFinished(() => {
    stopping = true
  })
  return {
    posted,
    moreStored(count, withinMs) {
      const wanted = stored() + count
      return until(`${count} more answers of 200`, () => stored() >= wanted, withinMs)
    },
    async stop() {
      stopping = true
      await Promise.all(running)
      return posted
    },
  }
}
