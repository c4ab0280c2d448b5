// Runs a job while its process runs no other one.

/** The one exclusive run that a process may have at a time. */
export interface ExclusiveRun {
  /** A job runs exclusively, or waits until it may: no other job may begin. */
  readonly isActive: boolean
  /**
   * Does a job's work once the process runs no other job. Must not be called while `isActive`.
   *
   * @param othersDone resolves when the process runs no other job.
   */
  run<Result>(othersDone: () => Promise<unknown>, work: () => Promise<Result>): Promise<Result>
}

/**
 * A job that may crash its worker runs exclusively: a crash counts against every job that the process has locked, so the others would fail with it in
 * the end.
 *
 * @param pause resolves when the process fetches no more jobs; `resume` ends that.
 */
export function createExclusiveRun(pause: () => Promise<void>, resume: () => Promise<void>): ExclusiveRun {
  const exclusiveRun = {
    isActive: false,
    async run<Result>(othersDone: () => Promise<unknown>, work: () => Promise<Result>): Promise<Result> {
      exclusiveRun.isActive = true
      try {
        await pause()
        await othersDone()
        return await work()
      } finally {
        exclusiveRun.isActive = false
        await resume()
      }
    },
  }
  return exclusiveRun
}
