// Stops a process's fetching of jobs: for a while, or for a job that runs while its process runs no other one.

/** The pauses of a process's fetching. */
export type Pauses = ReturnType<typeof createPauses>

/** Counts pauses, each of which lasts until it is resumed. */
export function createPauses() {
  let end = () => {}
  const pauses = {
    /** The number of pauses that last. */
    open: 0,
    /** Resolves when no pause lasts any more. */
    over: Promise.resolve(),
    async pause(): Promise<void> {
      pauses.open += 1
      if (pauses.open > 1) return
      pauses.over = new Promise((resolve) => {
        end = resolve
      })
    },
    async resume(): Promise<void> {
      pauses.open -= 1
      if (pauses.open === 0) end()
    },
    /** Resolves `over` although pauses last, because the process stops. */
    release: () => end(),
  }
  return pauses
}

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
 * A job that may crash its worker runs exclusively: a crash counts against every job that the process has locked, so
 * the others would fail with it in the end.
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
