// What a thread costs, from the stored results, and the rates that follow from it on the machine that measured them.
import { kindOfServer } from '../report/describe-surroundings.ts'
import type { Result } from '../report/result.ts'
import { medianOf } from '../scenarios/interleave.ts'

/** The processes that a thread costs CPU time. `load` is the load generator of the bench. */
export type Role = 'api' | 'worker' | 'redis' | 'mongodb' | 'load'

/** Which stand-in served: see kindOfServer. */
export type Server = 'stand-in in memory' | 'stand-in on disk'

/** ASSUMED: the share of a core that work can use. The predictions check it. */
export const BUSY = 0.75

/** CPU time in µs for one thread in each process. */
export type Costs = Readonly<Record<Role, number>>

/** The costs of a contender, its medians. Throws if they were not measured. */
export function costsOf(results: readonly Result[], server: Server, name: string, contender = 'sluice'): Costs {
  const { cpuUs } = medianOf(resultOf(results, server, name).measured, contender)
  const of = (role: Role) => cpuUs[role] ?? fail(`${name} has no CPU time of ${role}`)
  return { api: of('api'), worker: of('worker'), redis: of('redis'), mongodb: of('mongodb'), load: of('load') }
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

/** Predicts the rates of one and of two processes. Throws if two results of a prediction come from two machines. */
export function predictions(results: readonly Result[]): Prediction[] {
  const servers = ['stand-in in memory', 'stand-in on disk'] as const
  return servers.flatMap((server) =>
    CHECKED.map(({ costs, scenario, contender, apis, workers }) => {
      const where = resultOf(results, server, costs).where
      const other = resultOf(results, server, scenario)
      if (machineOf(where) !== machineOf(other.where)) fail(`${costs} and ${scenario} were measured on two machines`)
      const cost = costsOf(results, server, costs)
      const sum = Object.values(cost).reduce((all, one) => all + one, 0)
      const first = [
        { of: `the ${where.cores} cores`, us: sum, cores: where.cores },
        { of: 'the API', us: cost.api, cores: apis },
        { of: 'the worker', us: cost.worker, cores: workers },
        { of: "Redis's core", us: cost.redis, cores: 1 },
        // The stand-in on disk is a program in Python, which runs on one core at a time; that in memory uses all.
        { of: "the stand-in's core", us: cost.mongodb, cores: server === 'stand-in on disk' ? 1 : where.cores },
      ]
        .map(({ of, us, cores }) => ({ bottleneck: of, predicted: ratePerCore(us) * cores }))
        .reduce((low, next) => (next.predicted < low.predicted ? next : low))
      return { server, costs, scenario, contender, ...first, measured: medianOf(other.measured, contender).rate }
    }),
  )
}

/** The threads a second that one core carries. */
export const ratePerCore = (us: number) => (BUSY * 1e6) / us

/** The figure of a result. Throws if it was not measured. */
export function figureOf(results: readonly Result[], name: string, what: string): number {
  const { figures } = resultOf(results, 'stand-in in memory', name)
  return figures.find((figure) => figure.what === what)?.value ?? fail(`${name} has no figure ${what}`)
}

function resultOf(results: readonly Result[], server: Server, name: string): Result {
  const found = results.find((result) => result.name === name && kindOfServer(result.where) === server)
  return found ?? fail(`${name} was not measured on the ${server}`)
}

function machineOf({ cpu, cores, memoryGb, platform }: Result['where']): string {
  return [cpu, cores, memoryGb, platform].join(', ')
}

function fail(message: string): never {
  throw new Error(message)
}
