// Pauses fetching in a process.
export type Pauses = ReturnType<typeof createPauses>

/** Counts the open pauses of a process. Each lasts until its caller calls `resume`. */
export function createPauses() {
  let lasting = Promise.withResolvers<void>()
  lasting.resolve()
  const pauses = {
    open: 0,
    /** Resolves when all pauses have been resumed, or after `release`. */
    over: () => lasting.promise,
    /** A job runs alone, or waits for the other jobs to end. No other job may begin. */
    isRunningAlone: false,
    async pause(): Promise<void> {
      pauses.open += 1
      if (pauses.open === 1) lasting = Promise.withResolvers()
    },
    async resume(): Promise<void> {
      pauses.open -= 1
      if (pauses.open === 0) lasting.resolve()
    },
    /** Resolves `over` although pauses are open, because the process stops. */
    release: () => lasting.resolve(),
    /**
     * Runs the work of a job that may crash its worker, because a crash counts against every job
     * that the process has locked. Pauses fetching and waits for `othersDone` first. Do not call it
     * while `isRunningAlone`.
     */
    async runAlone<Result>(
      othersDone: () => Promise<unknown>,
      work: () => Promise<Result>,
    ): Promise<Result> {
      pauses.isRunningAlone = true
      try {
        await pauses.pause()
        await othersDone()
        return await work()
      } finally {
        pauses.isRunningAlone = false
        await pauses.resume()
      }
    },
  }
  return pauses
}
