import { median, type Run } from '../percentiles.ts'
import { usageOf } from './usage-of.ts'

/** A process by its role; several may share a name. */
export interface NamedProcess {
  name: string
  pid: number
}

/** The figures of one round of one contender. */
export interface Round extends Run {
  /** Sources and quotes sent per second. */
  documentsPerSecond: number
  /** CPU time in µs per thread, by process. */
  cpuUs: Record<string, number>
  /** Resident memory in MiB after the round, by process. */
  rssMb: Record<string, number>
}

/** Runs a load of threads, and records its cost in these processes. */
export async function measureRound(
  processes: readonly NamedProcess[],
  documentsPerThread: number,
  load: () => Promise<Run>,
): Promise<Round> {
  const before = await usages(processes)
  const run = await load()
  const after = await usages(processes)
  const documentsPerSecond = run.rate * documentsPerThread
  const cpuUs = spread(
    after,
    (name) => ((of(after, name).cpuMs - of(before, name).cpuMs) * 1000) / run.threads,
  )
  return {
    ...run,
    documentsPerSecond,
    cpuUs,
    rssMb: spread(after, (name) => of(after, name).rssBytes / 1024 ** 2),
  }
}

/** The median of some rounds, figure by figure. */
export function medianRound(rounds: readonly Round[]): Round {
  const middle = (figure: (round: Round) => number) => median(rounds.map(figure))
  const names = Object.keys(rounds[0]?.cpuUs ?? {})
  const each = (figures: (round: Round) => Record<string, number>) =>
    Object.fromEntries(names.map((name) => [name, middle((round) => figures(round)[name] ?? 0)]))
  return {
    threads: middle(({ threads }) => threads),
    rate: middle(({ rate }) => rate),
    p50: middle(({ p50 }) => p50),
    p99: middle(({ p99 }) => p99),
    failed: rounds.reduce((sum, { failed }) => sum + failed, 0),
    documentsPerSecond: middle(({ documentsPerSecond }) => documentsPerSecond),
    cpuUs: each(({ cpuUs }) => cpuUs),
    rssMb: each(({ rssMb }) => rssMb),
  }
}

type Usages = ReadonlyMap<string, { cpuMs: number; rssBytes: number }>

const NOTHING = { cpuMs: 0, rssBytes: 0 }

function of(usages: Usages, name: string) {
  return usages.get(name) ?? NOTHING
}

async function usages(processes: readonly NamedProcess[]): Promise<Usages> {
  const sums = new Map<string, typeof NOTHING>()
  const found = await Promise.all(
    processes.map(async ({ name, pid }) => ({ name, usage: await usageOf(pid) })),
  )
  for (const { name, usage = NOTHING } of found) {
    const { cpuMs, rssBytes } = of(sums, name)
    sums.set(name, { cpuMs: cpuMs + usage.cpuMs, rssBytes: rssBytes + usage.rssBytes })
  }
  return sums
}

function spread(usages: Usages, figure: (name: string) => number): Record<string, number> {
  return Object.fromEntries([...usages.keys()].map((name) => [name, figure(name)]))
}
