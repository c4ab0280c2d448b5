// Has the results of jobs retained whose acceptance Redis did not confirm: their callers have their ids.
import type { Thread } from '@sluice/contract'
import type { Results } from './results.ts'

/** How often a Redis that is away is tried, in ms. */
const TRY_EVERY_MS = 500
/** A caller that comes back later finds its job by posting again. */
const TRIES = 600
const MAX_JOBS = 10_000
/** The payloads of all these jobs together may have so many characters. Beyond it, a job that completes before Redis answers is not found. */
const MAX_CHARACTERS = 32 * 1024 * 1024

interface Waiting {
  /** '' beyond the bound. */
  data: string
  tries: number
}

/**
 * Makes a function that has a job's result retained as soon as Redis answers: it marks the job or, if the job has completed meanwhile, stores its payload
 * beside the result. The function returns at once and never throws.
 */
export function createRetainLater({ retainResult }: Pick<Results, 'retainResult'>) {
  const waiting = new Map<string, Waiting>()
  let characters = 0
  let isTrying = false

  function forget(jobId: string): void {
    characters -= waiting.get(jobId)?.data.length ?? 0
    waiting.delete(jobId)
  }

  async function retainAll(): Promise<void> {
    for (const [jobId, job] of waiting) {
      if (job.tries === 0) forget(jobId)
      job.tries -= 1
    }
    try {
      for (const [jobId, { data }] of waiting) {
        await retainResult(jobId, data)
        forget(jobId)
      }
    } catch {
      // Redis is still away.
    }
    isTrying = waiting.size > 0
    if (isTrying) setTimeout(retainAll, TRY_EVERY_MS).unref()
  }

  function note(jobId: string, payload: { tenant: string; threads: Thread[] }): void {
    if (waiting.size >= MAX_JOBS) return
    const data = JSON.stringify(payload)
    const fits = characters + data.length <= MAX_CHARACTERS
    waiting.set(jobId, { data: fits ? data : '', tries: TRIES })
    if (fits) characters += data.length
  }

  return (jobId: string, payload: { tenant: string; threads: Thread[] }): void => {
    note(jobId, payload)
    if (!isTrying) void retainAll()
    isTrying = true
  }
}
