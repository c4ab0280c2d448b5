// The bodies of requests and answers, each with its schema and an example. A test checks each example by its schema.
import {
  createProblem,
  FindLineSchema,
  ImportAnswerSchema,
  ImportLineSchema,
  JobAnswerSchema,
  LimitsSchema,
  NDJSON,
  OperationSchema,
  PROBLEMS,
  type ProblemCode,
  ReadinessSchema,
  SourceListSchema,
  SourcePageSchema,
  ThreadAnswerSchema,
} from '@sluice/contract'
import { type Content, EXAMPLE_ID } from './route.ts'

const SOURCE = { service: 'slack', externalId: 'C024BE91L/1714555800.000100', title: 'Which keyboard do you use?' }
const QUOTE = { externalId: '1714555860.000200', text: 'A split one, for my wrists.', speaker: 'ada' }
const SOURCE_ID = 'HIMta5gbmrzJqkboXM5_NbWI'
const QUOTE_ID = `${SOURCE_ID}WOetD1_c02sJAlmF6xx7mVQj`
const MOMENT = '2024-05-01T09:30:00.000Z'
const LATER = '2024-05-01T09:30:31.000Z'
const NEXT_QUOTES = `~1714555861000200.000000~${QUOTE_ID}`
const NEXT_JOBS = `1714555831000.${EXAMPLE_ID}`
const NEXT_RECENT = '1714555831000-0'
const REASON = `Document failed validation (code 121 DocumentValidationFailure, collection sources, _id "${SOURCE_ID}")`

/** Examples of the parameters of queries and paths, by name. */
const { service, externalId } = SOURCE
export const SOURCE_EXAMPLES = { service, externalId, since: '2024-05-01', limit: '20', after: NEXT_QUOTES }
export const FAILED_JOB_EXAMPLES = {
  ...SOURCE_EXAMPLES,
  tenant: 'acme',
  reason: 'validation',
  reasonGroup: 'Document failed validation',
  since: '2024-05-01T00:00:00Z',
  until: '2024-05-02',
  after: NEXT_JOBS,
}
export const FIND_EXAMPLES = { q: externalId, tenant: 'acme', service, state: 'failed', reason: 'validation' }
export const RECENT_EXAMPLES = { after: NEXT_RECENT }
export const SOURCE_ID_SCHEMA = { type: 'string', examples: [SOURCE_ID] }

const PROCESS = { version: '0.1.0', host: 'host-1', pid: 4_242, seenMsAgo: 1_300, cpu: 0.4, memoryBytes: 150_000_000 }
const FIGURES = { usedBytes: 12_000_000, maxBytes: 2_147_483_648, oldestMs: 1_800, minutes: 5, accepted: 1_200 }

/** The values of fields in examples. Any other field has the first value that its schema allows. */
const FIELDS: Readonly<Record<string, unknown>> = {
  ...SOURCE,
  id: EXAMPLE_ID,
  description: null,
  text: QUOTE.text,
  wordCount: 6,
  position: '1714555861000200.000000',
  tenant: 'acme',
  name: `slack/${externalId}`,
  lane: 'interactive',
  place: 0,
  reason: REASON,
  reasonGroup: 'Document failed validation (code … DocumentValidationFailure, collection sources, _id …)',
  stack: [`MongoServerError: ${REASON}\n    at duplicatesIn (store-errors.ts:92:34)`],
  payload: { tenant: 'acme', threads: [{ source: SOURCE, quotes: [QUOTE] }] },
  attempts: 5,
  failedAt: LATER,
  by: '8f14e45fceea',
  worker: 'host-1:4242',
  ...PROCESS,
  ...FIGURES,
}

const filter = { tenant: 'acme', reason: 'validation' }
const outcomes = { created: 1, updated: 0, unchanged: 0 }
const hit = {
  state: 'failed',
  name: FIELDS.name,
  place: 0,
  threads: 1,
  lane: 'interactive',
  requestId: EXAMPLE_ID,
  acceptedAt: MOMENT,
  endedAt: LATER,
  attempts: 5,
  reason: REASON,
}

/** What objects have besides or instead, by the titles of their schemas. */
const OBJECTS: Readonly<Record<string, object>> = {
  StoredSource: { id: SOURCE_ID },
  StoredQuote: { id: QUOTE_ID, ...QUOTE },
  ReadSource: { id: SOURCE_ID },
  ReadQuote: { id: QUOTE_ID, ...QUOTE },
  ListedSource: { id: SOURCE_ID },
  SourcePage: { next: NEXT_QUOTES },
  SourceList: { next: `001714555800000/${SOURCE_ID}~b2Zf0_lT` },
  AcceptedThread: { quotes: [QUOTE] },
  Thread: { quotes: [QUOTE] },
  LookupRequest: { externalIds: [externalId, 'unknown'] },
  StoredItem: { index: 0, id: SOURCE_ID, quotes: outcomes },
  Problem: problemExample('json_invalid'),
  ImportSummary: { received: 2, ...outcomes, failed: 1 },
  ImportProgress: { state: 'completed' },
  FailedJobPage: { next: NEXT_JOBS },
  Hit: hit,
  SearchEnd: { more: false },
  RecentJobs: {
    jobs: [{ kind: 'job', id: EXAMPLE_ID, tenant: 'acme', ...hit, state: 'completed', outcomes }],
    next: NEXT_RECENT,
  },
  Operation: { filter, state: 'active', total: 240, examined: 100, done: 97 },
  OperationRequest: { filter },
}

/** The part of JSON Schema that bodies use. */
interface Schema {
  type?: string
  title?: string
  format?: string
  const?: unknown
  enum?: readonly unknown[]
  minimum?: number
  items?: object
  properties?: Readonly<Record<string, object>>
  required?: readonly string[]
}

/** Makes an example of a schema, with the required fields of each object. */
function exampleOf(of: object, name = ''): unknown {
  const schema: Schema = Object(of)
  const { title = '', items = {}, properties = {}, required = [] } = schema
  if (Object.hasOwn(FIELDS, name)) return FIELDS[name]
  if (schema.enum !== undefined) return schema.enum[0]
  if (schema.const !== undefined) return schema.const
  switch (schema.type) {
    case 'object': {
      const fields = required.map((field) => [field, exampleOf(properties[field] ?? {}, field)])
      return { ...Object.fromEntries(fields), ...OBJECTS[title] }
    }
    case 'array':
      return alternatives(items).map((item) => exampleOf(item))
    case 'string':
      return schema.format === 'uuid' ? EXAMPLE_ID : schema.format === 'date-time' ? MOMENT : 'text'
    case 'boolean':
      return true
    default:
      return Math.max(1, schema.minimum ?? 1)
  }
}

const alternatives = (schema: object): readonly object[] => Object(schema).anyOf ?? [schema]

/** A body in JSON, with an example. @param more what the example has besides or instead. */
export function json(schema: object, more: object = {}, summary = 'An example'): Content {
  const value = { ...Object(exampleOf(schema)), ...more }
  return { 'application/json': { schema, examples: { example: { summary, value } } } }
}

/** A body in lines, with the schema of each line. */
function lines(
  itemSchema: object,
  summary: string,
  values = alternatives(itemSchema).map((item) => exampleOf(item)),
): Content {
  const schema = { type: 'string', contentMediaType: NDJSON, description: 'JSON texts, one on each line.' }
  const value = values.map((line) => `${JSON.stringify(line)}\n`).join('')
  return { [NDJSON]: { schema, 'x-itemSchema': itemSchema, examples: { lines: { summary, value } } } }
}

/** The threads of an import, of the schema `thread`. */
export function threadsContent(thread: object, maxItems: number): Content {
  const example = Object(exampleOf(thread))
  const two = [example, { ...example, externalId: 'C024BE91L/1714555900.000300' }]
  const summary = 'An array of one thread'
  return {
    ...lines(thread, 'Two threads, one on each line', two),
    'application/json': {
      schema: { type: 'array', items: thread, maxItems },
      examples: { example: { summary, value: [example] } },
    },
  }
}

export const SOURCE_OR_LIST: Content = {
  'application/json': {
    schema: { anyOf: [SourcePageSchema, SourceListSchema] },
    examples: {
      source: { summary: 'A source', value: exampleOf(SourcePageSchema) },
      list: { summary: 'A list, without `externalId`', value: exampleOf(SourceListSchema) },
    },
  },
}

export const JOB = json(JobAnswerSchema, {
  state: 'completed',
  attempts: 1,
  result: exampleOf(ThreadAnswerSchema),
})

export const IMPORT = {
  ...lines(ImportLineSchema, 'The results of two items, and the summary'),
  ...json(ImportAnswerSchema),
}

const found = alternatives(FindLineSchema)
  .slice(0, 3)
  .map((line) => exampleOf(line))
export const FOUND = lines(FindLineSchema, 'A hit, how much was searched, and the end', found)

export const OPENED_OPERATION = json(OperationSchema, { state: 'waiting', examined: 0, done: 0 })
const onLane = { kind: 'pause', lane: 'bulk', filter: undefined, state: 'completed', total: 0, examined: 0, done: 0 }
export const LANE_OPERATION = json(OperationSchema, onLane)

const limit = (value: number, unit: string, description: string) => ({ value, unit, description })
export const LIMITS = json(LimitsSchema, {
  limits: { title: limit(2_000, 'characters', "Length of a source's title.") },
  quota: { burstQuotes: limit(600_000, 'quotes', 'How many quotes one key may post at once.') },
  queue: { queueThreads: limit(200_000, 'threads', 'How many threads the queue accepts.') },
  waitSeconds: limit(30, 'seconds', 'The longest that a caller waits for its answer.'),
})

const ok = { ok: true }
const away = { ok: false, reason: 'not connected, or silent' }
export const READY = json(ReadinessSchema, { checks: { process: ok, redis: ok, replies: ok } })
export const NOT_READY = json(ReadinessSchema, { ready: false, checks: { redis: away } })

export const DESCRIPTION = json({ type: 'object' }, { openapi: '3.1.1' })

const text = (name: string, summary: string, value: string) => ({
  schema: { type: 'string' },
  examples: { [name]: { summary, value } },
})
export const PAGE: Content = {
  'text/html; charset=utf-8': text('page', 'The page', '<!doctype html><html lang="en">…</html>'),
}

/** A file of any of these media types. */
export const fileContent = (mediaTypes: readonly string[]): Content =>
  Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, text('file', 'Its text', '…')]))

/** What a problem looks like. */
export function problemExample(code: ProblemCode) {
  const hasJob = code === 'job_failed' || code === 'job_pending' || code === 'acceptance_unknown'
  const faults = [{ pointer: '', code: 'not_json' as const, message: PROBLEMS[code].title }]
  return createProblem(code, {
    instance: '/sources',
    requestId: 'import-7/line:12',
    ...(PROBLEMS[code].status === 400 && { errors: faults, total: 1 }),
    ...(hasJob && { jobId: EXAMPLE_ID }),
  })
}
