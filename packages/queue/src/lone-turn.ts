/** Shares a process between jobs that run side by side and those that must run while there is no other. */
export interface Turns {
  /** Does the work of one job; gives nothing, and does nothing, where another one has the process to itself. */
  take<Result>(alone: boolean, work: () => Promise<Result>): Promise<Result | undefined>
}

/**
 * A job that may crash its worker gets the process to itself: a crash counts against every job that the process holds, so the others would in
 * the end fail with it.
 *
 * @param stopTaking resolves when the process takes no more jobs; `goOn` ends that.
 */
export function createTurns(stopTaking: () => Promise<void>, goOn: () => Promise<void>): Turns {
  let sideBySide = 0
  let lone = false
  let onIdle = () => {}

  async function runBeside<Result>(work: () => Promise<Result>): Promise<Result> {
    sideBySide += 1
    try {
      return await work()
    } finally {
      sideBySide -= 1
      if (sideBySide === 0) onIdle()
    }
  }

  async function runAlone<Result>(work: () => Promise<Result>): Promise<Result> {
    lone = true
    try {
      await stopTaking()
      if (sideBySide > 0) await new Promise<void>((resolve) => (onIdle = resolve))
      return await work()
    } finally {
      lone = false
      await goOn()
    }
  }

  return {
    async take(alone, work) {
      if (lone) return undefined
      return alone ? runAlone(work) : runBeside(work)
    },
  }
}
