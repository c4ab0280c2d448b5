/** The size of each scenario. */
export interface Scale {
  /** Whether it is large enough to judge floors. */
  full: boolean
  rounds: number
  /** Requests before the measurement. */
  warmUp: number
  /** Requests a round, with many callers. */
  requests: number
  /** Requests a round, with one caller. */
  aloneRequests: number
  openLoopSeconds: number
  enduranceSeconds: number
  /** Quotes of the long thread. */
  longThread: number
  /** The quotes to which a source grows. */
  grownQuotes: number
  waitingJobs: number
  /** Threads of the timed import, and of the import beside which others post. */
  importThreads: number
  crowdingImportThreads: number
}

const FULL: Scale = {
  full: true,
  rounds: 3,
  warmUp: 2_000,
  requests: 6_000,
  aloneRequests: 1_000,
  openLoopSeconds: 20,
  enduranceSeconds: 180,
  longThread: 10_000,
  grownQuotes: 5_000,
  waitingJobs: 200_000,
  importThreads: 15_000,
  crowdingImportThreads: 200_000,
}

/** Enough to see that everything works, too little for a measurement. */
const QUICK: Scale = {
  full: false,
  rounds: 2,
  warmUp: 200,
  requests: 600,
  aloneRequests: 100,
  openLoopSeconds: 3,
  enduranceSeconds: 6,
  longThread: 1_000,
  grownQuotes: 300,
  waitingJobs: 6_000,
  importThreads: 1_000,
  crowdingImportThreads: 3_000,
}

/**
 * The scale of a full or a quick run; `requests` per round, where given, shrinks everything that
 * counts requests.
 */
export function scaleOf({
  quick,
  rounds,
  requests,
}: {
  quick: boolean
  rounds?: number
  requests?: number
}): Scale {
  const scale = quick ? QUICK : FULL
  const share = requests === undefined ? 1 : requests / scale.requests
  const shrunk = (count: number) => Math.max(2, Math.round(count * share))
  return {
    ...scale,
    full: scale.full && share >= 1,
    rounds: rounds ?? scale.rounds,
    warmUp: shrunk(scale.warmUp),
    requests: shrunk(scale.requests),
    aloneRequests: shrunk(scale.aloneRequests),
    waitingJobs: shrunk(scale.waitingJobs),
    importThreads: shrunk(scale.importThreads),
    crowdingImportThreads: shrunk(scale.crowdingImportThreads),
  }
}
