// The state of a queue at a moment: jobs, threads and the oldest job by lane and state, and which lanes are paused.
import { type Overview, QUEUED_STATES } from '@sluice/contract'
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'
import { LANES } from '../job/job.ts'
import { asList, openScript } from '../redis/script.ts'

export type QueueState = Pick<Overview, 'queued' | 'paused'>

/**
 * Makes a function that reads the state of a queue, in about 0.1 ms of Redis's time for each lane, 2 ms at most. If a lane has more
 * than 300 active or delayed jobs, their threads are estimated by 300 of them, and an older one may be missed. A job
 * that waits for another try behind other jobs counts by its age only once its turn is near.
 */
export function createReadState(redis: Redis, { base, jobs }: QueueKeys): () => Promise<QueueState> {
  const read = openScript(redis, new URL('./queue-state.lua', import.meta.url))
  return async () => {
    const state: QueueState = { queued: [], paused: {} }
    const replies = await Promise.all(LANES.map((lane) => read(base, jobs[lane], jobs.interactive, lane)))
    for (const [index, lane] of LANES.entries()) {
      const [paused, ...counts] = asList(replies[index])
      const numbers = counts.map(Number)
      if (paused) state.paused[lane] = JSON.parse(String(paused))
      for (const [at, of] of QUEUED_STATES.entries()) {
        const [jobs = 0, threads = 0, oldestMs = 0] = numbers.slice(3 * at)
        state.queued.push({ lane, state: of, jobs, threads, oldestMs })
      }
    }
    return state
  }
}
