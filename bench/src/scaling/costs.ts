// What a thread costs, from the stored results, and the rates that follow from it on the machine
// that measured them.
import { kindOfServer } from '../report/describe-surroundings.ts'
import type { Result } from '../report/result.ts'
import type { Posting } from '../scenarios/bytes.ts'
import { medianOf } from '../scenarios/interleave.ts'

/** The processes that a thread costs CPU time. `load` is the load generator of the bench. */
export type Role = 'api' | 'worker' | 'redis' | 'mongodb' | 'load'

/** Which emulator served: see kindOfServer. */
export type Server = 'emulator in memory' | 'emulator on disk'

/** ASSUMED: the share of a core that work can use. The predictions check it. */
export const BUSY = 0.75

/** CPU time in µs for one thread in each process. */
export type Costs = Readonly<Record<Role, number>>

/** The costs of a contender, its medians. Throws if they were not measured. */
export function costsOf(
  results: readonly Result[],
  server: Server,
  name: string,
  contender = 'sluice',
): Costs {
  const { cpuUs } = medianOf(resultOf(results, server, name).measured, contender)
  const of = (role: Role) => cpuUs[role] ?? fail(`${name} has no CPU time of ${role}`)
  return {
    api: of('api'),
    worker: of('worker'),
    redis: of('redis'),
    mongodb: of('mongodb'),
    load: of('load'),
  }
}

/** How the threads of a load arrive: each with a caller that waits, or in imports. */
export const COSTS_IN = { interactive: 'callers-64', import: 'import' } as const

/**
 * The scenario that measured a role with 1, 2, 4 and 8 processes, and the names of its contenders.
 */
const BY_COUNT = {
  api: { scenario: 'replicas', names: { 1: '1 API', 2: '2 APIs', 4: '4 APIs', 8: '8 APIs' } },
  worker: {
    scenario: 'workers',
    names: { 1: '1 worker', 2: '2 workers', 4: '4 workers', 8: '8 workers' },
  },
} as const

/**
 * CPU time in µs of one thread in a role, where this number of processes share a load: more
 * processes have smaller batches each. The rise was measured with 64 callers, for the next larger
 * number of processes, eight at most.
 */
export function costAmong(
  results: readonly Result[],
  posting: Posting,
  role: 'api' | 'worker',
  count: number,
): number {
  const { scenario, names } = BY_COUNT[role]
  const measuredWith = count <= 1 ? 1 : count <= 2 ? 2 : count <= 4 ? 4 : 8
  const of = (processes: keyof typeof names) =>
    costsOf(results, MEMORY, scenario, names[processes])[role]
  return costsOf(results, MEMORY, COSTS_IN[posting])[role] * Math.max(1, of(measuredWith) / of(1))
}

/**
 * CPU time in µs of one thread in Redis: the dearest measured, whatever the number of processes.
 */
export function dearestRedis(results: readonly Result[], posting: Posting): number {
  const inCosts = costsOf(results, MEMORY, COSTS_IN[posting]).redis
  if (posting === 'import') return inCosts
  const all = Object.values(BY_COUNT).flatMap(({ scenario, names }) =>
    Object.values(names).map((name) => costsOf(results, MEMORY, scenario, name).redis),
  )
  return Math.max(inCosts, ...all)
}

const MEMORY = 'emulator in memory'

/**
 * The least and the greatest cost of the rounds of a contender, of which `costsOf` has the median.
 */
export function spreadOf(
  results: readonly Result[],
  name: string,
  role: Role,
): readonly [number, number] {
  const { measured } = resultOf(results, MEMORY, name)
  const rounds =
    measured.find((one) => one.name === 'sluice')?.rounds ?? fail(`${name} has no rounds`)
  const values = rounds.map(
    ({ cpuUs }) => cpuUs[role] ?? fail(`${name} has no CPU time of ${role}`),
  )
  return [Math.min(...values), Math.max(...values)]
}

/** A rate that follows from the costs in another scenario, and the rate that was measured. */
export interface Prediction {
  server: Server
  costs: string
  scenario: string
  contender: string
  /** Threads a second. */
  predicted: number
  measured: number
  bottleneck: string
}

/** Scenarios with one and with two processes, and the scenario that has the costs of one thread. */
const CHECKED = [
  { costs: 'callers-64', scenario: 'workers', contender: '1 worker', apis: 1, workers: 1 },
  { costs: 'callers-64', scenario: 'workers', contender: '2 workers', apis: 1, workers: 2 },
  { costs: 'callers-64', scenario: 'replicas', contender: '1 API', apis: 1, workers: 1 },
  { costs: 'callers-64', scenario: 'replicas', contender: '2 APIs', apis: 2, workers: 1 },
  { costs: 'import', scenario: 'import-command', contender: 'endpoint', apis: 1, workers: 1 },
] as const

/**
 * Predicts the rates of one and of two processes. Throws if two results of a prediction come from
 * two machines.
 */
export function predictions(results: readonly Result[]): Prediction[] {
  const servers = ['emulator in memory', 'emulator on disk'] as const
  return servers.flatMap((server) =>
    CHECKED.map(({ costs, scenario, contender, apis, workers }) => {
      const where = resultOf(results, server, costs).where
      const other = resultOf(results, server, scenario)
      if (machineOf(where) !== machineOf(other.where))
        fail(`${costs} and ${scenario} were measured on two machines`)
      const cost = costsOf(results, server, costs)
      const sum = Object.values(cost).reduce((all, one) => all + one, 0)
      const first = [
        { of: `the ${where.cores} cores`, us: sum, cores: where.cores },
        { of: 'the API', us: cost.api, cores: apis },
        { of: 'the worker', us: cost.worker, cores: workers },
        { of: "Redis's core", us: cost.redis, cores: 1 },
        // The emulator on disk is a program in Python, which runs on one core at a time. The one in
        // memory uses all.
        {
          of: "the emulator's core",
          us: cost.mongodb,
          cores: server === 'emulator on disk' ? 1 : where.cores,
        },
      ]
        .map(({ of, us, cores }) => ({ bottleneck: of, predicted: ratePerCore(us) * cores }))
        .reduce((low, next) => (next.predicted < low.predicted ? next : low))
      return {
        server,
        costs,
        scenario,
        contender,
        ...first,
        measured: medianOf(other.measured, contender).rate,
      }
    }),
  )
}

/** The threads a second that one core carries. */
export const ratePerCore = (us: number) => (BUSY * 1e6) / us

/** The figure of a result. Throws if it was not measured. */
export function figureOf(results: readonly Result[], name: string, what: string): number {
  const { figures } = resultOf(results, MEMORY, name)
  return (
    figures.find((figure) => figure.what === what)?.value ?? fail(`${name} has no figure ${what}`)
  )
}

function resultOf(results: readonly Result[], server: Server, name: string): Result {
  const found = results.find(
    (result) => result.name === name && kindOfServer(result.where) === server,
  )
  return found ?? fail(`${name} was not measured on the ${server}`)
}

function machineOf({ cpu, cores, memoryGb, platform }: Result['where']): string {
  return [cpu, cores, memoryGb, platform].join(', ')
}

function fail(message: string): never {
  throw new Error(message)
}
