// Brings the sources of a job into agreement with their quotes before the job fails for good.
import { setTimeout as delay } from 'node:timers/promises'
import { type Away, asError, type FetchedJob } from '@sluice/queue'
import type { BatchStore } from '@sluice/store'
import { isStoreAway, type LostStore, type ProbeStore } from './store-away.ts'
import { requestsOf } from './worker.ts'

interface FinalFailureDeps {
  recountRequests: BatchStore['recountRequests']
  probeStore: ProbeStore
  putBack: (job: FetchedJob, lost: LostStore) => Away
}

/** The tries of a recount while the store commits writes, and the pause between two. */
const TRIES = 3
const AGAIN_MS = 500

/**
 * Makes a function that recounts the sources of a job. If the store is away, the function puts the job back.
 *
 * The function throws if the recount fails although the store commits writes. The job's tokens then stay in its
 * sources, and the next request for a source, or a repair, sums its quotes.
 */
export function createBeforeFinalFailure({ recountRequests, probeStore, putBack }: FinalFailureDeps) {
  return async (job: FetchedJob): Promise<Away | undefined> => {
    const requests = requestsOf(job)
    for (let tries = 1; ; tries++) {
      const since = performance.now()
      try {
        await recountRequests(requests)
        return undefined
      } catch (error) {
        if (await isStoreAway(error, probeStore, requests))
          return putBack(job, { away: true, reason: asError(error).message, since })
        if (tries === TRIES) throw error
        await delay(AGAIN_MS)
      }
    }
  }
}
