// The answer of `GET /admin/overview`: the current state of the service, and what happened lately.
import type { Static } from 'typebox'
import { outcomeCounts } from './answers.ts'
import { count, moment, named, oneOf, optional, Type, text } from './json-schema.ts'

/** The states of a job that was accepted and has not succeeded. `delayed`: between two tries. */
export const QUEUED_STATES = ['waiting', 'delayed', 'active', 'failed'] as const

const number = (description: string) => Type.Number({ minimum: 0, description })
const lane = oneOf(['interactive', 'bulk'], 'The lane.')
const byLane = (value: ReturnType<typeof number>) => Type.Object({ interactive: value, bulk: value })

const PauseSchema = Type.Object(
  { by: optional(text('As `by` of an operation.')), since: optional(moment('When the lane was paused.')) },
  { description: 'Empty if a tool of BullMQ paused the lane.' },
)

const QueuedJobsSchema = Type.Object({
  lane,
  state: oneOf(QUEUED_STATES, '`delayed`: between two tries.'),
  jobs: count('Jobs of this lane and state.'),
  threads: count('Threads of these jobs.'),
  oldestMs: number('Age of the oldest since it was accepted, last retried by an operator, or failed. 0 without a job.'),
})

const SlowJobSchema = Type.Object({
  id: text('The id of the job.'),
  name: text('service/externalId of its first thread.'),
  activeMs: number('For how long the worker has had it.'),
})

const ProcessSchema = Type.Object({
  id: text('Another one at each start.'),
  kind: oneOf(['api', 'worker', 'dashboard'], 'What it is.'),
  version: text('Of Sluice.'),
  host: text('The name of its machine.'),
  pid: count('Its process id there.'),
  startedAt: moment('When it started.'),
  seenMsAgo: number('Since its last sign of life, which comes every second.'),
  cpu: number('Cores that it kept busy in the last second.'),
  memoryBytes: count('Its resident memory.'),
  storeAwayMs: optional(number('For how long MongoDB has been away, by this worker.')),
  slowJobs: optional(Type.Array(SlowJobSchema, { description: 'Jobs that it has had for more than ten seconds.' })),
})

const quantiles = (description: string) =>
  optional(Type.Object({ p50: number('The median.'), p99: number('The 99th percentile.') }, { description }))

/** What happened in a span of minutes. */
const HistoryPointSchema = Type.Object({
  at: moment('When it began.'),
  minutes: count('How long it is.'),
  accepted: count('Threads that were accepted.'),
  stored: Type.Object(outcomeCounts, { description: 'Threads that were stored, by their outcome.' }),
  failed: count('Threads that failed for good.'),
  refused: count('Requests that were refused because of the load or a quota.'),
  refusedByTenant: Type.Record(Type.String(), count('Requests of this tenant.'), {
    description: 'The ten tenants with most refusals, by the beginning of their names.',
  }),
  queueTime: quantiles('Seconds in the queue. Absent if no job was fetched.'),
  storeTime: quantiles('Seconds in the store. Absent if no job was stored.'),
  waiting: byLane(number('The most threads that waited.')),
  oldestSeconds: byLane(number('The highest age of the oldest waiting job.')),
})

/** The answer of `GET /admin/overview`: the current state, and the history of the last five minutes and hour. */
export const StatusSchema = named('Status', {
  at: moment('When this was read.'),
  queued: Type.Array(QueuedJobsSchema, { description: 'The queue by lane and state.' }),
  paused: Type.Object(
    { interactive: optional(PauseSchema), bulk: optional(PauseSchema) },
    { description: 'The lanes that are paused, with who did it.' },
  ),
  tenants: Type.Array(Type.Object({ tenant: Type.String(), threads: count('Accepted and not yet completed.') }), {
    description: 'The ten tenants with the most threads in the queue.',
  }),
  processes: Type.Array(ProcessSchema, { description: 'Those that gave a sign of life in the last ten minutes.' }),
  redis: Type.Object({
    usedBytes: count('Memory that Redis uses.'),
    maxBytes: count('The most that it may use; 0 if it has no limit of its own.'),
  }),
  storeAwayMs: optional(number('For how long MongoDB has been away, by the workers that live.')),
  lastMinutes: HistoryPointSchema,
  lastHour: HistoryPointSchema,
})

export type Status = Static<typeof StatusSchema>
export type Overview = Omit<Status, 'lastMinutes' | 'lastHour'>
export type HistoryPoint = Static<typeof HistoryPointSchema>
export type QueuedJobs = Static<typeof QueuedJobsSchema>
export type SeenProcess = Static<typeof ProcessSchema>

/** A process without a heartbeat for this time does not count as alive. */
export const ALIVE_MS = 15_000

/** Summarizes a status for people, the most important facts first. @param describe formats a duration in ms. */
export function summarize(status: Status, describe: (ms: number) => string) {
  const { queued, processes, storeAwayMs, tenants, lastHour } = status
  const liveWorkers = processes.filter(({ kind, seenMsAgo }) => kind === 'worker' && seenMsAgo < ALIVE_MS).length
  const waiting = queued.reduce((sum, { state, jobs }) => sum + (state === 'waiting' ? jobs : 0), 0)
  const wait = `${waiting.toLocaleString('en')} ${waiting === 1 ? 'job waits' : 'jobs wait'}.`
  const storeIsAway = storeAwayMs !== undefined && `MongoDB has been away for ${describe(storeAwayMs)}; ${wait}`
  const noWorker = liveWorkers === 0 && `No worker has shown a sign of life for ${describe(ALIVE_MS)}; ${wait}`
  const inQueue = new Map(tenants.map(({ tenant, threads }) => [tenant, threads]))
  const names = new Set([...inQueue.keys(), ...Object.keys(lastHour.refusedByTenant)])
  return {
    liveWorkers,
    /** Why jobs wait, the worst cause first. */
    problems: [storeIsAway, noWorker].filter((problem) => problem !== false),
    slowJobs: processes.flatMap(({ host, pid, slowJobs = [] }) =>
      slowJobs.map((job) => ({ ...job, worker: `${host}:${pid}` })),
    ),
    /** Heartbeats cut the long name of a refused tenant, so such a tenant may be listed twice. */
    tenants: Array.from(names, (tenant) => {
      return { tenant, threads: inQueue.get(tenant) ?? 0, refused: lastHour.refusedByTenant[tenant] ?? 0 }
    }),
  }
}

/** Counts the threads that were stored in a span. */
export function storedOf({ stored: { created, updated, unchanged } }: HistoryPoint): number {
  return created + updated + unchanged
}
