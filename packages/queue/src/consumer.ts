import type { Redis } from 'ioredis'
import { LANES, type Lane } from './ingest-job.ts'
import { consumeLane } from './lane-consumer.ts'
import { createTurns } from './lone-turn.ts'
import type { QueueKeys } from './queue-keys.ts'
import type { JobHandlers } from './work-on-job.ts'

export interface ConsumerOptions extends JobHandlers {
  keys: QueueKeys
  /** A patient connection; each lane opens a blocking one like it. */
  redis: Redis
  /** How many jobs of each lane this process holds at a time. */
  inHand: Readonly<Record<Lane, number>>
  /** Resolves when jobs of this lane would be worked on at once. Until then they wait in the queue, where every worker can have them. */
  ready: (lane: Lane) => Promise<void>
}

/** Takes jobs from the queue. */
export interface Consumer {
  /** Takes no more jobs until `resume` was called as often as this, but for a few that Redis may give to one who sleeps already. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Takes no more jobs and waits for those at hand, at most so long (ms). What is not done by then goes to another worker when its lock runs out. */
  close(graceMs: number): Promise<void>
}

export function createConsumer({ inHand, ready, ...parts }: ConsumerOptions): Consumer {
  let holds = 0
  let closing = false
  let goOn = Promise.withResolvers<void>()
  goOn.resolve()

  async function pause(): Promise<void> {
    holds += 1
    if (holds === 1) goOn = Promise.withResolvers()
  }
  async function resume(): Promise<void> {
    holds -= 1
    if (holds === 0) goOn.resolve()
  }

  const turns = createTurns(pause, resume)
  const lanes = LANES.map((lane) =>
    consumeLane(lane, {
      ...parts,
      turns,
      inHand: inHand[lane],
      async mayTake() {
        await goOn.promise
        await ready(lane)
        return !closing && holds === 0
      },
    }),
  )
  return {
    pause,
    resume,
    async close(graceMs) {
      closing = true
      goOn.resolve()
      const { promise: graceOver, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, graceMs)
      await Promise.race([Promise.all(lanes.map((lane) => lane.close())), graceOver])
      clearTimeout(timer)
    },
  }
}
