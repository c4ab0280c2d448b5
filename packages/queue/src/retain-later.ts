// Has the results of jobs retained whose acceptance Redis did not confirm: their callers have their ids.
import type { Results } from './results.ts'

/** How often a Redis that is away is tried, in ms. */
const TRY_EVERY_MS = 500
/** A caller that comes back later finds its job by posting again. */
const TRIES = 600
const MAX_JOBS = 10_000

/** Makes a function that marks a job for retention as soon as Redis answers. It returns at once and never throws. */
export function createRetainLater({ retainResult }: Pick<Results, 'retainResult'>) {
  const left = new Map<string, number>()
  let isTrying = false

  async function retainAll(): Promise<void> {
    for (const [jobId, tries] of left) {
      if (tries === 0) left.delete(jobId)
      else left.set(jobId, tries - 1)
    }
    try {
      for (const jobId of left.keys()) {
        await retainResult(jobId)
        left.delete(jobId)
      }
    } catch {
      // Redis is still away.
    }
    isTrying = left.size > 0
    if (isTrying) setTimeout(retainAll, TRY_EVERY_MS).unref()
  }

  return (jobId: string): void => {
    if (left.size < MAX_JOBS) left.set(jobId, TRIES)
    if (!isTrying) void retainAll()
    isTrying = true
  }
}
