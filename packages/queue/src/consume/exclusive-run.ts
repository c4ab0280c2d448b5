// Pauses a process's fetching of jobs: until it is resumed, or while a job that may crash its worker runs alone.

export type Pauses = ReturnType<typeof createPauses>

/** Counts pauses. Each lasts until `resume` is called for it. */
export function createPauses() {
  let lasting = Promise.withResolvers<void>()
  lasting.resolve()
  const pauses = {
    /** The number of pauses that were not resumed yet. */
    open: 0,
    /** Resolves when all pauses were resumed, or after `release`. */
    over: () => lasting.promise,
    /** A job runs exclusively, or waits for the other jobs to end. No other job may begin. */
    isExclusive: false,
    async pause(): Promise<void> {
      pauses.open += 1
      if (pauses.open === 1) lasting = Promise.withResolvers()
    },
    async resume(): Promise<void> {
      pauses.open -= 1
      if (pauses.open === 0) lasting.resolve()
    },
    /** Resolves `over` in spite of pauses, because the process stops. */
    release: () => lasting.resolve(),
    /**
     * Runs the work of a job that may crash its worker, once fetching is paused and `othersDone` has resolved. A crash
     * counts against every job that the process has locked, so the other jobs must be done. Do not call while
     * `isExclusive`.
     */
    async runExclusively<Result>(othersDone: () => Promise<unknown>, work: () => Promise<Result>): Promise<Result> {
      pauses.isExclusive = true
      try {
        await pauses.pause()
        await othersDone()
        return await work()
      } finally {
        pauses.isExclusive = false
        await pauses.resume()
      }
    },
  }
  return pauses
}
