// Finds a job for its caller, by its id.
import type { JobState } from '@sluice/contract'
import { attemptsShown, readProgress } from '../job/job.ts'
import type { Queues } from '../job/lanes.ts'
import type { Results } from './results.ts'

/** A job as its caller may see it. */
export interface FoundJob {
  state: JobState
  changedAt: Date
  attempts: number
  /** If the job has completed: how many bytes `readRetained` reads. */
  bytes: number
}

/**
 * Finds a job of one thread by its id, without its payload. Looks for a retained result, then for
 * BullMQ's job.
 */
export async function findJob(
  queues: Queues,
  { look }: Pick<Results, 'look'>,
  tenant: string,
  id: string,
): Promise<FoundJob | undefined> {
  for (let looks = 0; looks < 2; looks++) {
    const [owner, bytes, place, about] = await look(id)
    // Read no more for another tenant, so that it can't distinguish this job from one that does not
    // exist.
    if (owner !== tenant) return undefined
    if (!Array.isArray(about))
      return {
        state: 'completed',
        changedAt: new Date(Number(place)),
        attempts: Number(about),
        bytes: Number(bytes),
      }
    const state = await queues[place === 2 ? 'interactive' : 'bulk'].getJobState(id)
    // The job may have completed after `look`.
    if (state !== 'unknown') return describeFound(state, about)
  }
  return undefined
}

/** @param fields as `timesOf` returns them: see jobs.lua. */
function describeFound(
  state: string,
  [enqueuedAt, fetchedAt, failedAt, failedAttempts, progress]: readonly unknown[],
): FoundJob {
  const attempts = attemptsShown(failedAttempts)
  const since = (at: unknown) => ({ changedAt: new Date(Number(at ?? enqueuedAt)), bytes: 0 })
  if (state === 'failed') return { state, attempts, ...since(failedAt) }
  if (state === 'active') return { state, attempts: attempts + 1, ...since(fetchedAt) }
  return { state: 'waiting', attempts, ...since(readProgress(progress).waitingSince) }
}
