// The bodies of requests and answers, each with its schema and an example. A test checks each example by its schema.
import * as contract from '@sluice/contract'
import { type Content, EXAMPLE_ID, json, lines } from './route.ts'

const SOURCE = { service: 'slack', externalId: 'C024BE91L/1714555800.000100', title: 'Which keyboard do you use?' }
const QUOTE = { externalId: '1714555860.000200', text: 'A split one, for my wrists.', speaker: 'ada' }
const SOURCE_ID = 'HIMta5gbmrzJqkboXM5_NbWI'
const QUOTE_ID = `${SOURCE_ID}WOetD1_c02sJAlmF6xx7mVQj`
const MOMENT = '2024-05-01T09:30:00.000Z'
const NEXT_QUOTES = `~1714555861000200.000000~${QUOTE_ID}`
const NEXT_SOURCES = `001714555800000/${SOURCE_ID}~b2Zf0_lT`
const NEXT_JOBS = `1714555831000.${EXAMPLE_ID}`

/** Examples of the parameters of queries and paths, by name. */
const { service, externalId } = SOURCE
export const SOURCE_EXAMPLES = { service, externalId, limit: 20 }
export const PAGE_EXAMPLES = { limit: 20, after: NEXT_QUOTES }
export const FAILED_JOB_EXAMPLES = {
  ...SOURCE_EXAMPLES,
  tenant: 'acme',
  reason: 'validation',
  reasonGroup: 'Document failed validation',
  since: '2024-05-01T00:00:00Z',
  until: '2024-05-02T00:00:00Z',
  after: NEXT_JOBS,
}
export const SOURCE_ID_SCHEMA = { type: 'string', examples: [SOURCE_ID] }

const thread = {
  ...SOURCE,
  channelName: 'keyboards',
  createdAt: '2024-05-01T09:30:00Z',
  quotes: [
    { ...QUOTE, upVotes: 4, downVotes: 1 },
    { externalId: '1714555890.000300', text: 'Which layout?', speaker: 'grace', replyingTo: QUOTE.externalId },
  ],
}
const linesOf = (values: readonly object[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('')

/** A thread as it is posted. Its schema depends on the limits. */
export const threadContent = (schema: object): Content => json(schema, thread, 'A thread')

/** The threads of an import, as lines or as an array. */
export const threadsContent = (schema: object, maxItems: number): Content => ({
  ...lines(
    schema,
    linesOf([thread, { ...thread, externalId: 'C024BE91L/1714555900.000300' }]),
    'Two threads, one on each line',
  ),
  ...json({ type: 'array', items: schema, minItems: 1, maxItems }, [thread], 'An array of one thread'),
})

const read = {
  id: SOURCE_ID,
  ...SOURCE,
  description: null,
  wordCount: 6,
  status: contract.STORED_STATUS,
  createdAt: MOMENT,
}
const stored = {
  message: contract.MESSAGE,
  source: { ...read, outcome: 'created' },
  quotes: [{ id: QUOTE_ID, ...QUOTE, outcome: 'created' }],
}
export const STORED = json(contract.ThreadAnswerSchema, stored)

export const ACCEPTED = json(contract.AcceptedAnswerSchema, {
  message: contract.MESSAGE,
  source: { ...SOURCE, description: null },
  quotes: [QUOTE],
})

const page = {
  source: read,
  quotes: [{ id: QUOTE_ID, ...QUOTE, position: '1714555861000200.000000' }],
  next: NEXT_QUOTES,
}
export const SOURCE_PAGE = json(contract.SourcePageSchema, page)
const list = { sources: [{ ...read, quoteCount: 1, acceptedAt: MOMENT }], next: NEXT_SOURCES }
export const SOURCE_OR_LIST: Content = {
  'application/json': {
    schema: { anyOf: [contract.SourcePageSchema, contract.SourceListSchema] },
    examples: {
      source: { summary: 'A source', value: page },
      list: { summary: 'A list, without `externalId`', value: list },
    },
  },
}

export const lookupContent = (schema: object): Content =>
  json(schema, { service: SOURCE.service, externalIds: [SOURCE.externalId, 'unknown'] }, 'Two names')
export const FOUND_SOURCES = json(contract.LookupAnswerSchema, { sources: [read] })

const done = { id: EXAMPLE_ID, state: 'completed', changedAt: MOMENT, attempts: 1, result: stored }
export const JOB = json(contract.JobAnswerSchema, done)

export function problemExample(code: contract.ProblemCode) {
  const hasJob = code === 'job_failed' || code === 'job_pending' || code === 'acceptance_unknown'
  const faults = [{ pointer: '', code: 'not_json' as const, message: contract.PROBLEMS[code].title }]
  return contract.createProblem(code, {
    instance: '/sources',
    requestId: 'import-7/line:12',
    ...(contract.PROBLEMS[code].status === 400 && { errors: faults, total: 1 }),
    ...(hasJob && { jobId: EXAMPLE_ID }),
  })
}

const summary = { received: 2, created: 1, updated: 0, unchanged: 0, failed: 1 }
const refused = { index: 1, problem: problemExample('json_invalid') }
const results = [
  {
    index: 0,
    externalId: SOURCE.externalId,
    status: 200,
    outcome: 'created',
    id: SOURCE_ID,
    wordCount: 6,
    quotes: { created: 1, updated: 0, unchanged: 0 },
  },
  { ...refused, status: 400 },
]
export const IMPORT = {
  ...lines(contract.ImportLineSchema, linesOf([...results, { summary }]), 'The results of two items, and the summary'),
  ...json(contract.ImportAnswerSchema, { results, summary }),
}

const progress = { id: EXAMPLE_ID, state: 'completed', summary, problems: [refused] }
export const IMPORT_PROGRESS = json(contract.ImportProgressSchema, progress)

const REASON = `Document failed validation (code 121 DocumentValidationFailure, collection sources, _id "${SOURCE_ID}")`
const failed = {
  id: EXAMPLE_ID,
  tenant: 'acme',
  name: `slack/${SOURCE.externalId}`,
  threads: 1,
  lane: 'interactive',
  enqueuedAt: MOMENT,
  failedAt: '2024-05-01T09:30:31.000Z',
  attempts: 5,
  reason: REASON,
  reasonGroup: 'Document failed validation (code … DocumentValidationFailure, collection sources, _id …)',
}
export const FAILED_JOBS = json(contract.FailedJobPageSchema, {
  jobs: [{ ...failed, failedThreadCount: 1 }],
  next: NEXT_JOBS,
})

const { reasonGroup, enqueuedAt: acceptedAt, failedAt: endedAt, ...job } = failed
const ofGroup = { reasonGroup, jobs: 12, threads: 40, oldestAt: endedAt, newestAt: endedAt }
const group = { ...ofGroup, jobId: EXAMPLE_ID, reason: REASON }
export const FAILED_JOB_GROUPS = json(contract.FailedJobGroupsSchema, { groups: [group], isComplete: true })

export const FAILED_JOB = json(contract.FailedJobSchema, {
  ...failed,
  tries: [{ at: endedAt, worker: 'host-1:4242', reason: REASON }],
  failedThreads: [{ place: 0, service, externalId, reason: REASON }],
  failedThreadCount: 1,
  stack: [`MongoServerError: ${REASON}\n    at duplicatesIn (store-errors.ts:92:34)`],
  payload: { tenant: 'acme', threads: [{ source: SOURCE, quotes: [QUOTE] }] },
})

export const FIND_EXAMPLES = { q: SOURCE.externalId, tenant: 'acme', service, reason: 'validation' }
const hit = { ...job, kind: 'job', state: 'failed', requestId: EXAMPLE_ID, acceptedAt, endedAt }
const completedJob = { ...hit, state: 'completed', outcomes: { created: 1, updated: 0, unchanged: 0 } }
export const RECENT_JOBS = json(contract.RecentJobsSchema, { jobs: [completedJob], next: '1714555831000-0' })

const point = {
  at: MOMENT,
  minutes: 5,
  coveredSeconds: 270,
  accepted: 1_200,
  stored: { created: 1_100, updated: 60, unchanged: 20 },
  failed: 0,
  refused: 3,
  timedOut: 1,
  refusedByTenant: { acme: 3 },
  totalTime: { interactive: { p50: 0.03, p95: 0.1, p99: 0.35 } },
  queueTime: { p50: 0.02, p99: 0.3 },
  storeTime: { p50: 0.01, p99: 0.05 },
  waiting: { interactive: 4, bulk: 250 },
  oldestSeconds: { interactive: 0.1, bulk: 2.5 },
}
export const STATUS = json(contract.StatusSchema, {
  at: MOMENT,
  queued: [{ lane: 'bulk', state: 'waiting', jobs: 4, threads: 200, oldestMs: 1_800 }],
  paused: { bulk: { by: '8f14e45fceea', since: MOMENT } },
  tenants: [{ tenant: 'acme', threads: 200 }],
  processes: [
    {
      id: EXAMPLE_ID,
      kind: 'worker',
      version: '0.1.0',
      host: 'host-1',
      pid: 4_242,
      startedAt: MOMENT,
      seenMsAgo: 1_300,
      cpu: 0.4,
      memoryBytes: 150_000_000,
      slowJobs: [{ id: EXAMPLE_ID, name: `slack/${SOURCE.externalId}`, activeMs: 12_000 }],
    },
  ],
  redis: { usedBytes: 12_000_000, maxBytes: 2_147_483_648 },
  lastMinutes: point,
  lastHour: { ...point, minutes: 60, coveredSeconds: 3_570 },
})

export const FOUND = json(contract.FoundSchema, { hits: [hit], more: false, notes: [] })

/** Only the OpenAPI document has this rule: `parseOperationRequest` checks it itself, for a better message. */
const ONE_FIELD = { minProperties: 1, maxProperties: 1 }
const filter = { tenant: 'acme', reason: 'validation' }
export const OPERATION_REQUEST = json(
  { ...contract.OperationRequestSchema, ...ONE_FIELD },
  { filter },
  'The failed jobs of a tenant',
)

const times = { createdAt: MOMENT, changedAt: MOMENT }
const opened = { id: EXAMPLE_ID, by: '8f14e45fceea', ...times, total: 0, examined: 0, done: 0 }
const onLane = { ...opened, kind: 'pause', state: 'completed', lane: 'bulk' }
export const LANE_OPERATION = json(contract.OperationSchema, onLane)
const waiting = { ...opened, kind: 'retry', state: 'waiting', filter, total: 240 }
export const OPENED_OPERATION = json(contract.OperationSchema, waiting)
const active = { ...waiting, state: 'active', examined: 100, done: 97 }
export const OPERATION = json(contract.OperationSchema, active)
export const OPERATIONS = json(contract.OperationListSchema, { operations: [active] })

export const LIMITS = json(contract.LimitsSchema, {
  limits: { title: { value: 2_000, unit: 'characters', description: "Length of a source's title." } },
  quota: { burstQuotes: { value: 600_000, unit: 'quotes', description: 'How many quotes one key may post at once.' } },
  queue: { queueThreads: { value: 200_000, unit: 'threads', description: 'How many threads the queue accepts.' } },
  waitSeconds: { value: 30, unit: 'seconds', description: 'The longest that a caller waits for its answer.' },
})

export const ALIVE = json(contract.LivenessSchema, { alive: true })
const checks = { process: { ok: true }, redis: { ok: true }, replies: { ok: true } }
export const READY = json(contract.ReadinessSchema, { ready: true, checks })
const away = { ok: false, reason: 'not connected, or silent' }
export const NOT_READY = json(contract.ReadinessSchema, { ready: false, checks: { redis: away } })

export const DESCRIPTION = json({ type: 'object' }, { openapi: '3.1.1' })

const text = { schema: { type: 'string' }, examples: { file: { summary: 'Its text', value: '…' } } }

/** A file of any of these media types. */
export const fileContent = (mediaTypes: readonly string[]): Content =>
  Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, text]))
