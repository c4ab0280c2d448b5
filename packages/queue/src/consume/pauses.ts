// The pauses of a process's fetching.
export type Pauses = ReturnType<typeof createPauses>

/** Counts pauses of a process's fetching. Each lasts until `resume` is called for it. */
export function createPauses() {
  let lasting = Promise.withResolvers<void>()
  lasting.resolve()
  const pauses = {
    open: 0,
    /** Resolves when all pauses were resumed, or after `release`. */
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
    /** Resolves `over`, because the process stops. */
    release: () => lasting.resolve(),
    /**
     * Runs the work of a job that may crash its worker, once fetching is paused and `othersDone`
     * has resolved: a crash counts against every job that the process has locked. Do not call while
     * `isRunningAlone`.
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
