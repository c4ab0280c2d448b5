import type { FoundJob, JobResult, Results } from '@sluice/queue'

/**
 * Makes the last look before a caller is told its job's id instead of its result. Where Redis is away the id is told all the same: the job is
 * there, though its result may be kept for less long.
 */
export function createTell(
  results: Pick<Results, 'retain'>,
  findJob: (jobId: string) => Promise<FoundJob | undefined>,
): (jobId: string) => Promise<JobResult | undefined> {
  return async (jobId) => {
    try {
      return (await results.retain(jobId)) ?? (await findJob(jobId))?.result
    } catch {
      return undefined
    }
  }
}
