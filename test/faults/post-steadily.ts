import { setTimeout as pause } from 'node:timers/promises'
import type { TestContext } from 'vitest'
import { aThread, type Posted, postThread, type Target } from './post-thread.ts'
import { until } from './until.ts'

/** Callers that go on posting. */
export interface Load {
  /** What was answered so far, in the order of the answers. */
  posted: readonly Posted[]
  /** Resolves when so many more were answered with 200. */
  moreStored(count: number, withinMs: number): Promise<unknown>
  /** Lets each caller hear its last answer, and gives all of them. */
  stop(): Promise<readonly Posted[]>
}

/** A refused caller waits so long, in ms, that it does not only burn the machine's time. */
const AFTER_REFUSAL_MS = 50

/**
 * Starts callers that post one thread after the other, each in two parts: the second one adds quotes to the first, so that
 * appends are cut short too. They stop with the test at the latest.
 */
export function postSteadily(t: TestContext, target: Target, { callers = 16 } = {}): Load {
  const posted: Posted[] = []
  let stopping = false

  async function call(): Promise<void> {
    while (!stopping) {
      const thread = aThread()
      await post(thread)
      await post(aThread({ externalId: thread.externalId, quotes: 2, from: 3 }))
    }
  }
  async function post(thread: ReturnType<typeof aThread>): Promise<void> {
    if (stopping) return
    const answer = await postThread(target, thread)
    posted.push(answer)
    if (answer.status !== 200) await pause(AFTER_REFUSAL_MS)
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
      return until(`${count} more answers of 200`, withinMs, () => stored() >= wanted)
    },
    async stop() {
      stopping = true
      await Promise.all(running)
      return posted
    },
  }
}
