// The answer of `GET /admin/overview`: the current state of the service, and its recent history.
import type { Static } from 'typebox'
import { COUNTS_TEXT, countProperties } from './counts.ts'
import { count, moment, named, oneOf, optional, Type, text } from './json-schema.ts'

/** The states of a job that was accepted and has not succeeded. `delayed`: between two attempts. */
export const QUEUED_STATES = ['waiting', 'delayed', 'active', 'failed'] as const

const number = (description: string) => Type.Number({ minimum: 0, description })
const lane = oneOf(['interactive', 'bulk'], 'The lane.')
const byLane = (value: ReturnType<typeof number>) =>
  Type.Object({ interactive: value, bulk: value })

const interactive = optional(
  count('Threads of the interactive lane; as a bound, by MAX_WAITING_SECONDS.'),
)
const threadsAndBytes = (description: string) =>
  Type.Object(
    { threads: count('Threads.'), bytes: count('Their bytes in Redis.'), interactive },
    { description },
  )

export const PauseSchema = Type.Object(
  {
    by: optional(text('Who paused it first, as `by` of an operation.')),
    since: optional(moment('When the lane was paused first.')),
    why: optional(text('What the operators said about it.')),
    until: optional(moment('When the pause ends by itself.')),
  },
  { description: 'Empty if a tool of BullMQ paused the lane.' },
)

const QueuedJobsSchema = Type.Object({
  lane,
  state: oneOf(QUEUED_STATES, '`delayed`: between two attempts.'),
  jobs: count('Jobs of this lane and state.'),
  threads: count('Threads of these jobs; of failed jobs, those that could not be stored.'),
  oldestMs: number(
    'Age of the oldest since it was accepted, last retried by an operator, or failed. 0 without a job.',
  ),
})

const SlowJobSchema = Type.Object({
  id: text('The id of the job.'),
  name: text('service/externalId of its first thread.'),
  activeMs: number('For how long the worker has had it.'),
})

const RefusedKeyCountSchema = Type.Object({
  keyId: text('The beginning of the id of the key.'),
  tenant: text('Its tenant. Empty for a key of another role.'),
  why: oneOf(
    ['revoked', 'expired', 'gone', 'role'],
    '`role`: the key works, but not for such requests.',
  ),
  requests: count('Such requests. After five minutes without any, the count begins again.'),
  lastMsAgo: number('For how long none was refused since.'),
})

const processCounts = (description: string) =>
  Type.Record(Type.String(), count(COUNTS_TEXT), { description })

const ServersSchema = Type.Object(
  {
    queue: text('QUEUE.'),
    redis: text('The hosts in REDIS_URL.'),
    database: text('The database in MONGODB_URL.'),
    mongodb: text('The hosts in MONGODB_URL.'),
  },
  { description: 'Which servers it uses.' },
)

const ProcessSchema = Type.Object({
  id: text('Another one at each start.'),
  kind: oneOf(['api', 'worker', 'dashboard'], 'What it is.'),
  version: text('Of Sluice.'),
  revision: optional(text('The beginning of its git revision. Empty if it is not known.')),
  host: text('The name of its machine.'),
  pid: count('Its process id there.'),
  startedAt: moment('When it started, by Redis’s clock.'),
  seenMsAgo: number('Since its last sign of life, which comes every second.'),
  clockAheadMs: optional(
    Type.Number({ description: 'By how much its clock is ahead of Redis’s. Negative: behind.' }),
  ),
  cpu: number('Cores that it kept busy in the last second.'),
  memoryBytes: count('Its resident memory.'),
  storeAwayMs: optional(number('For how long MongoDB has been unavailable, by this worker.')),
  storeMs: optional(
    number('Of a worker: how long its last small write by which it probes MongoDB took.'),
  ),
  counts: optional(processCounts('What it has counted since its start.')),
  lastMinute: optional(processCounts('What it counted in the last minute.')),
  recent: optional(
    Type.Record(Type.String(), count('A rise.'), {
      description:
        'What it counted in the last ten seconds. An API counts `requests`, correct requests that it `refused` (also as `refused:CODE:TENANT`), and callers of POST /sources that got a result (`answered`) or a 504 (`timedOut`). A worker counts `batches`, their time (`batchMs`), and moments without MongoDB (`storeFlickers`).',
    }),
  ),
  uncompleted: optional(
    text('Of a worker: why Redis refused to complete a job in the last ten seconds.'),
  ),
  refusedCommands: optional(text('Why Redis refuses commands that it sends.')),
  refusedByStore: optional(text('Why MongoDB refuses commands that it sends.')),
  activeJobs: optional(count('Of a worker: jobs that it has.')),
  queueBounds: optional(threadsAndBytes('Of an API: the most that may be in the queue.')),
  tenantShare: optional(number('Of an API: the part of this that one tenant may use.')),
  servers: optional(ServersSchema),
  redisReplicas: optional(count('Of an API: the replicas of Redis that confirm each request.')),
  refusedKeys: optional(
    Type.Array(RefusedKeyCountSchema, {
      description:
        'Of an API: the ten keys with the most requests that it refused because of the key.',
    }),
  ),
  slowJobs: optional(
    Type.Array(SlowJobSchema, { description: 'Jobs that it has had for more than ten seconds.' }),
  ),
})

const RedisLossSchema = Type.Object(
  {
    at: moment('When it was noticed, within two seconds.'),
    since: moment('When the oldest thread was accepted that may be gone.'),
    threads: count('Threads that waited, a few seconds before.'),
    failed: count('Threads that had failed.'),
    backTo: optional(moment('The state to which Redis went back. Absent if it is empty.')),
  },
  { description: 'Redis lost its data in the last day. Absent if it did not.' },
)

const OtherStoreSchema = Type.Object(
  {
    at: moment('When it stopped.'),
    process: text('Its kind, host and process id.'),
    text: text('The store that it uses, and the one that the queue feeds.'),
  },
  {
    description:
      'A process that stopped because it uses another store than the queue feeds. Absent without one.',
  },
)

const [p50, p95, p99] = [
  number('The median.'),
  number('The 95th percentile.'),
  number('The 99th percentile.'),
]
const quantiles = (description: string) => optional(Type.Object({ p50, p99 }, { description }))
const laneTime = optional(
  Type.Object({
    ...{ p50, p95, p99 },
    inQueue: optional(number('The median of the part in the queue.')),
    inStore: optional(number('The median of the part in the store.')),
  }),
)

/** What happened in a span of minutes. */
const HistoryPointSchema = Type.Object({
  at: moment('When it began.'),
  minutes: count('How long it is.'),
  coveredSeconds: number('The part of it in which a process lived, and which the counts cover.'),
  ...countProperties,
  refusedByTenant: Type.Record(Type.String(), count('Requests of this tenant.'), {
    description: 'The ten tenants with most refusals, by the beginning of their names.',
  }),
  totalTime: optional(
    Type.Object(
      { interactive: laneTime, bulk: laneTime },
      {
        description:
          'Seconds from the acceptance of a job until it was stored. A lane is absent if none was stored.',
      },
    ),
  ),
  queueTime: quantiles(
    'Seconds in the queue, a part of this: until the last fetch. Absent if no job was stored.',
  ),
  storeTime: quantiles('Seconds in the store, the other part. Absent if no job was stored.'),
  storeAwaySeconds: optional(number('For how long MongoDB was unavailable, at most.')),
  waiting: byLane(number('The most threads that waited.')),
  oldestSeconds: byLane(number('The highest age of the oldest waiting job.')),
})

/** The codes of what can be wrong, the worst first. */
const FINDINGS = [
  'redis_lost',
  'other_store',
  'store_away',
  'store_unstable',
  'store_slow',
  'redis_unfit',
  'store_unfit',
  'process_missing',
  'crash_loop',
  'process_gone',
  'process_stuck',
  'redis_full',
  'redis_replicas',
  'redis_clock',
  'clock_wrong',
  'callers_time_out',
  'requests_refused',
  'queue_full',
  'lane_paused',
  'keys_gone',
  'key_expired',
  'jobs_old',
  'versions_differ',
  'completions_refused',
  'threads_failing',
  'failed_threads',
  'keys_expire',
  'key_revoked',
  'retention',
] as const

const FindingSchema = Type.Object({
  code: oneOf(FINDINGS, 'What was found.'),
  level: oneOf(['problem', 'note'], 'A note needs nobody now.'),
  text: text('The same in words.'),
  page: text('The path of the page of the dashboard that shows more.'),
})

/**
 * The answer of `GET /admin/overview`: the current state, and the history of the last five minutes
 * and hour.
 */
export const StatusSchema = named('Status', {
  at: moment('When this was read.'),
  verdict: optional(
    Type.Array(FindingSchema, {
      description: 'What is wrong, the worst first. Without a problem, all is well.',
    }),
  ),
  queued: Type.Array(QueuedJobsSchema, { description: 'The queue by lane and state.' }),
  paused: Type.Object(
    { interactive: optional(PauseSchema), bulk: optional(PauseSchema) },
    { description: 'The lanes that are paused, with who did it.' },
  ),
  tenants: Type.Array(
    Type.Object({ tenant: Type.String(), threads: count('Accepted and not yet completed.') }),
    {
      description: 'The ten tenants with the most threads in the queue.',
    },
  ),
  processes: Type.Array(ProcessSchema, {
    description: 'Those that gave a sign of life in the last ten minutes.',
  }),
  redis: Type.Object({
    usedBytes: count('Memory that Redis uses.'),
    maxBytes: count('The most that it may use; 0 if it has no limit of its own.'),
    replicas: optional(count('Replicas that are connected.')),
    faults: optional(
      Type.Array(Type.String(), {
        description: 'Why it refuses writes, or may lose what it has, and what mends that.',
      }),
    ),
    clockBehindMs: optional(
      number('By how much its clock is behind the last place in the order of acceptance.'),
    ),
  }),
  storeAwayMs: optional(
    number('For how long MongoDB has been unavailable, for any worker. Absent if it is not.'),
  ),
  storeAway: optional(
    Type.Object(
      {
        since: moment('When a worker first lost MongoDB.'),
        reason: text('The error that it met.'),
      },
      { description: 'Absent while MongoDB answers.' },
    ),
  ),
  otherStore: optional(OtherStoreSchema),
  redisLoss: optional(RedisLossSchema),
  retention: optional(
    Type.Object(
      {
        at: moment('When it began.'),
        due: count('Threads that it found so far.'),
        deleted: count('Threads that it deleted so far.'),
      },
      { description: 'The deletion of due threads that began last. Absent without a retention.' },
    ),
  ),
  load: optional(threadsAndBytes('What counts for the bounds of the queue.')),
  lastFailureMs: optional(
    number('For how long the newest failed job has been failed. Absent without one.'),
  ),
  expiringKeys: optional(
    Type.Array(
      Type.Object({
        keyId: text('The beginning of the id of the key.'),
        tenant: text('Its tenant. Empty for a key of another role.'),
        name: text('Its name.'),
        expiresAt: moment('When it expires.'),
      }),
      {
        description:
          'The keys that expire within a week and have no successor, the soonest first; at most a hundred.',
      },
    ),
  ),
  lastMinutes: HistoryPointSchema,
  lastHour: HistoryPointSchema,
})

export type Status = Static<typeof StatusSchema>
export type Retention = NonNullable<Status['retention']>
export type HistoryPoint = Static<typeof HistoryPointSchema>
export type QueuedJobs = Static<typeof QueuedJobsSchema>
export type Finding = Static<typeof FindingSchema>
export type RefusedKeyCount = Static<typeof RefusedKeyCountSchema>
export type SeenProcess = Static<typeof ProcessSchema>

/** Names the code that a process runs: `0.1.0 (1f2e3d4c5b)`. */
export function codeOf({ version, revision }: Pick<SeenProcess, 'version' | 'revision'>): string {
  return revision ? `${version} (${revision})` : version
}

/** A process without a heartbeat for this time does not count as alive. */
export const ALIVE_MS = 10_000

/** Returns the name under which heartbeats count the refusals of a tenant: they cut a long name. */
export const refusedNameOf = (tenant: string) => tenant.slice(0, 64)

/**
 * Lists the slow jobs of all processes, and the tenants that have threads in the queue or requests
 * that were refused.
 */
export function summarize({ processes, tenants, lastHour }: Status) {
  const { refusedByTenant } = lastHour
  const listed = tenants.map(({ tenant, threads }) => {
    return { tenant, threads, refused: refusedByTenant[refusedNameOf(tenant)] ?? 0 }
  })
  const names = new Set(listed.map(({ tenant }) => refusedNameOf(tenant)))
  const others = Object.entries(refusedByTenant).filter(([name]) => !names.has(name))
  return {
    slowJobs: processes.flatMap(({ host, pid, slowJobs = [] }) =>
      slowJobs.map((job) => ({ ...job, worker: `${host}:${pid}` })),
    ),
    tenants: [...listed, ...others.map(([tenant, refused]) => ({ tenant, threads: 0, refused }))],
  }
}

/**
 * Lists how long jobs of a span took from acceptance until they were stored: for each lane, then
 * the parts in the queue and in the store.
 */
export function timesOf({ totalTime = {}, queueTime, storeTime }: HistoryPoint) {
  const { interactive, bulk } = totalTime
  const times = { interactive, bulk, 'in queue': queueTime, 'in store': storeTime }
  return Object.entries(times).flatMap(([of, time]) =>
    time ? [{ of, p95: undefined, ...time }] : [],
  )
}
