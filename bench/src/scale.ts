/** How much is asked of each scenario. */
export interface Scale {
  /** Whether it is enough to judge floors by. */
  full: boolean
  rounds: number
  /** Requests before anything counts. */
  warmUp: number
  /** Requests a round, with many callers. */
  requests: number
  /** Requests a round, with one caller. */
  aloneRequests: number
  openLoopSeconds: number
  enduranceSeconds: number
  /** Quotes of the long thread. */
  longThread: number
  /** Quotes that a source grows to. */
  grownQuotes: number
  waitingJobs: number
  /** Threads of the batch that is timed, and of the one that others post beside. */
  batchThreads: number
  crowdingBatchThreads: number
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
  batchThreads: 15_000,
  crowdingBatchThreads: 200_000,
}

/** Enough to see that everything works; what it shows is no measurement. */
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
  batchThreads: 1_000,
  crowdingBatchThreads: 3_000,
}

/** A full run's scale, or a quick one's; where `requests` a round are given, everything that counts requests shrinks with them. */
export function scaleOf({ quick, rounds, requests }: { quick: boolean; rounds?: number; requests?: number }): Scale {
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
    batchThreads: shrunk(scale.batchThreads),
    crowdingBatchThreads: shrunk(scale.crowdingBatchThreads),
  }
}
