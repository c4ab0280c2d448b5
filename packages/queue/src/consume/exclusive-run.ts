// Stops a process's fetching of jobs: for a while, or for a job that runs while its process runs no other one.

export type Pauses = ReturnType<typeof createPauses>

/** Counts pauses, each of which lasts until it is resumed. */
export function createPauses() {
  let lasting = Promise.withResolvers<void>()
  lasting.resolve()
  const pauses = {
    /** The number of pauses that last. */
    open: 0,
    /** Resolves when no pause lasts any more. */
    over: () => lasting.promise,
    /** A job runs exclusively, or waits until it may: no other job may begin. */
    isExclusive: false,
    async pause(): Promise<void> {
      pauses.open += 1
      if (pauses.open === 1) lasting = Promise.withResolvers()
    },
    async resume(): Promise<void> {
      pauses.open -= 1
      if (pauses.open === 0) lasting.resolve()
    },
    /** Resolves `over` although pauses last, because the process stops. */
    release: () => lasting.resolve(),
    /**
     * Does the work of a job that may crash its worker once `othersDone` resolves: a crash counts against every job that
     * the process has locked, so the others would fail with it in the end. Not to be called while `isExclusive`.
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
