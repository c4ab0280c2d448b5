// What a route is, what describes routes (bodies, parameters, headers, examples), and last the
// OpenAPI 3.1 document. It is built from the route table, and thus from the schemas that validate
// requests. A test checks the examples of requests, and of answers to posts.
import * as contract from '@sluice/contract'
import type { KeyRole } from '@sluice/credentials/keys'
import type { ApiDeps } from '../api-deps.ts'
import { type Access, mayCall } from '../request/middleware.ts'
import type { Handler } from '../request/request-context.ts'
import { FREE_ANSWER_BYTES } from '../settings.ts'
import { KEY_FORM } from '../sources/post-source.ts'

/**
 * One route of the API, without the problems and parameters that follow from its access, its method
 * and its body.
 */
export interface Route {
  method: 'get' | 'post' | 'delete'
  /** In the form of OpenAPI: `/jobs/{id}`. */
  path: string
  access: Access
  bound: keyof typeof ANSWER_BOUNDS
  handler: (deps: ApiDeps) => Handler
  /** The route's name in generated clients. */
  id: string
  summary: string
  description?: string
  /**
   * A route that does not list the parameter Idempotency-Key refuses requests with it, because
   * their callers would rely on it.
   */
  parameters?: readonly Parameter[]
  body?: Content
  /** Set for a POST that adds nothing to the queue: the queue's bounds then do not apply. */
  onlyReads?: true
  /** The answers that are not problems, by status. */
  answers: Readonly<
    Record<
      number,
      readonly [description: string, content: Content, headers?: readonly HeaderName[]]
    >
  >
  problems?: readonly contract.ProblemCode[]
  /** Headers that any of the route's problems may have, besides the usual ones. */
  problemHeaders?: readonly HeaderName[]
}

const FREE = `${FREE_ANSWER_BYTES / 1024} KiB`

/**
 * What bounds the answer of a route, in the words of its description. No read may keep out other
 * callers.
 */
const ANSWER_BOUNDS = {
  fixed: 'The size of the answer does not depend on what is stored.',
  request: `The answer has the quotes of the request. Above ${FREE}, and a kilobyte for each quote, it charges the quota.`,
  items: 'The answer has a result of bounded size for each item.',
  page: `A page ends once its texts have about half a million characters. Above ${FREE}, it charges the quota.`,
  stream: `A page ends after 16 MiB or three seconds. Above ${FREE}, it charges the quota, and it ends when that is used up.`,
  size: `Above ${FREE}, the answer charges the quota, and is read only while that is not used up.`,
  payload: `The answer has the request of the job. After one above ${FREE}, the next of an operator waits.`,
  entries: 'The answer has a bounded number of entries of bounded size.',
} as const

/**
 * Returns whether a route adds to the queue. Operators' routes must work while the queue accepts
 * nothing.
 */
export function enqueues({
  method,
  access,
  onlyReads,
}: Pick<Route, 'method' | 'access' | 'onlyReads'>): boolean {
  return method !== 'get' && (access === 'importer' || access === 'deleter') && !onlyReads
}

export type Content = Readonly<Record<string, MediaType>>

interface MediaType {
  schema: object
  /**
   * The schema of each line, if a body has lines. OpenAPI 3.1 can describe a sequence only as text.
   */
  'x-itemSchema'?: object
  examples?: Readonly<Record<string, { summary: string; value: unknown }>>
}

/**
 * A parameter. The example is in its `schema`, because Swagger UI would fill its forms with an
 * example beside the schema.
 */
export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  schema: object
}

/** A body in JSON. */
export function json(schema: object, value?: unknown, summary = 'An example'): Content {
  return {
    'application/json': {
      schema,
      ...(value !== undefined && { examples: { example: { summary, value } } }),
    },
  }
}

/** A body of lines, with the schema of each line. */
function lines(itemSchema: object, values: readonly object[], summary: string): Content {
  const schema = {
    type: 'string',
    contentMediaType: contract.NDJSON,
    description: 'JSON texts, one on each line.',
  }
  const value = values.map((line) => `${JSON.stringify(line)}\n`).join('')
  return {
    [contract.NDJSON]: {
      schema,
      'x-itemSchema': itemSchema,
      examples: { lines: { summary, value } },
    },
  }
}

const EXAMPLE_ID = '3f0c9a52-7a6e-4b57-9d0c-0d4c6c1d2f10'

/** A parameter of a path. @param more adds to its schema. */
export function pathParameter(name: string, more: object, description?: string): Parameter {
  const schema = { type: 'string', ...more }
  return {
    name,
    in: 'path',
    required: true,
    ...(description !== undefined && { description }),
    schema,
  }
}

/**
 * The path parameter `id`, for something with a random id.
 * @param what names it in the description.
 */
export function idOf(what: string): Parameter {
  return pathParameter('id', { format: 'uuid', examples: [EXAMPLE_ID] }, `The id of ${what}.`)
}

/**
 * The parameters of a query, from the schema that checks them. Their examples are valid together.
 */
export function queryParameters(
  {
    properties,
    required = [],
  }: { properties: Readonly<Record<string, object>>; required?: readonly string[] | undefined },
  examples: Readonly<Record<string, string | number>>,
): Parameter[] {
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema: { ...schema, ...(name in examples && { examples: [examples[name]] }) },
  }))
}

function header(name: string, description: string, example: string, more: object = {}): Parameter {
  return {
    name,
    in: 'header',
    description,
    schema: { type: 'string', ...more, examples: [example] },
  }
}

const REQUEST_ID = header(
  'X-Request-Id',
  'Your own id of the request, at most 128 visible ASCII characters. The answer and the log repeat it.',
  'import-7/line:12',
)

export const IDEMPOTENCY_KEY = header(
  'Idempotency-Key',
  'A name of this request, 1 to 255 visible ASCII characters, in quotation marks or without them (draft-ietf-httpapi-idempotency-key-header-07). Within 24 hours, the same request with the same key gets the same answer, and no new job.',
  '"8e03978e-40d5-43e8-bc93-6894a57f9324"',
  { pattern: KEY_FORM.source },
)

export const PREFER = header(
  'Prefer',
  'RFC 7240. `respond-async`: do not wait. `wait=N`: wait at most N seconds. `handling=strict`: refuse what is otherwise ignored. Several are separated by commas.',
  'respond-async',
)

export const IMPORT_ID = header(
  'Import-Id',
  'A UUID in lower case that you made. Operators see all requests of your tenant with the same one as one import, for a day. Without it, or with another text, each request is an import of its own.',
  '8e03978e-40d5-43e8-bc93-6894a57f9324',
)

export const PREFER_WAIT = header(
  'Prefer',
  '`wait=N` waits at most N seconds for the end of the job.',
  'wait=5',
)

/** Headers of answers. `always`: if a description lists the header, each answer has it. */
const optional = (description: string, example: string, more: object = {}) => ({
  description,
  schema: { type: 'string', ...more, examples: [example] },
})
const always = (description: string, example: string | number, more: object = {}) => ({
  description,
  required: true,
  schema: {
    type: typeof example === 'number' ? 'integer' : 'string',
    ...more,
    examples: [example],
  },
})

const ANSWER_HEADERS = {
  'X-Request-Id': always('Your id of the request, or a new one.', EXAMPLE_ID, {
    pattern: '^[\\x21-\\x7e]{1,128}$',
  }),
  Location: optional('The path of the progress or page.', `/jobs/${EXAMPLE_ID}`, {
    format: 'uri-reference',
  }),
  'Preference-Applied': optional('The preferences that took effect (RFC 7240).', 'respond-async'),
  'Retry-After': always('Wait this many seconds before you send the request again.', 7, {
    minimum: 1,
  }),
  'RateLimit-Policy': optional(
    'The quota of the key (draft-ietf-httpapi-ratelimit-headers-11).',
    '"quotes";q=600000;w=60;sluice-unit="quotes"',
  ),
  RateLimit: optional(
    'What is left of the quota (`r`), and when it is full, or has more (`t`).',
    '"quotes";r=0;t=7',
  ),
  Allow: always('The methods of the path.', 'GET, HEAD'),
  'Accept-Encoding': optional(
    'The content codings that the service reads.',
    'gzip, br, deflate, zstd',
  ),
  'Cache-Control': optional('Whether the answer may be kept.', 'no-store'),
  'Content-Encoding': optional(
    'How the file is compressed. Absent if the caller accepts no gzip.',
    'gzip',
  ),
  Vary: always('The headers of the request on which the answer depends.', 'accept-encoding'),
  'X-Content-Type-Options': always('Keeps browsers from guessing another type.', 'nosniff'),
  'Content-Security-Policy': always(
    'What the page may load: only files of its own origin.',
    "default-src 'self'",
  ),
} as const

type HeaderName = keyof typeof ANSWER_HEADERS

const SOURCE = {
  service: 'slack',
  externalId: 'C024BE91L/1714555800.000100',
  title: 'Which keyboard do you use?',
}
const QUOTE = {
  externalId: '1714555860.000200',
  text: 'A split one, for my wrists.',
  speaker: 'ada',
}
const SOURCE_ID = 'HIMta5gbmrzJqkboXM5_NbWI'
const QUOTE_ID = `${SOURCE_ID}WOetD1_c02sJAlmF6xx7mVQj`

/** Examples for parameters of queries and paths, by name. */
const { service, externalId } = SOURCE
export const SOURCE_EXAMPLES = { service, externalId, limit: 20 }
export const PAGE_EXAMPLES = { limit: 20, after: `~1714555861000200.000000~${QUOTE_ID}` }
export const FAILED_JOB_EXAMPLES = {
  ...SOURCE_EXAMPLES,
  tenant: 'acme',
  reason: 'validation',
  group: '0a1b2c3d',
  operation: '0192f0c1-7e57-7abc-8def-0123456789ab',
  since: '2024-05-01T00:00:00Z',
  until: '2024-05-02T00:00:00Z',
  after: `1714555831000.${EXAMPLE_ID}`,
}
export const FIND_EXAMPLES = { q: externalId, tenant: 'acme', service, reason: 'validation' }
export const SUPPRESSION_ID = `${SOURCE_ID}.${service}`
export const SOURCE_ID_SCHEMA = { examples: [SOURCE_ID] }
export const QUOTE_ID_SCHEMA = { examples: [QUOTE_ID] }

const thread = {
  ...SOURCE,
  channelName: 'keyboards',
  createdAt: '2024-05-01T09:30:00Z',
  quotes: [
    { ...QUOTE, upVotes: 4, downVotes: 1 },
    {
      externalId: '1714555890.000300',
      text: 'Which layout?',
      speaker: 'grace',
      replyingTo: QUOTE.externalId,
    },
  ],
}

/** A thread as it is posted. Its schema depends on the limits. */
export const threadContent = (schema: object): Content => json(schema, thread, 'A thread')

/** The threads of an import, as lines or as an array. */
export const threadsContent = (schema: object, maxItems: number): Content => ({
  ...lines(
    schema,
    [thread, { ...thread, externalId: 'C024BE91L/1714555900.000300' }],
    'Two threads',
  ),
  ...json(
    { type: 'array', items: schema, minItems: 1, maxItems },
    [thread],
    'An array of one thread',
  ),
})

export const lookupContent = (schema: object): Content =>
  json(schema, { service, externalIds: [externalId, 'unknown'] }, 'Two names')

const EXPORT_CURSOR = `${SOURCE_ID}~C7x3Rj3S`
export const EXPORT_EXAMPLES = {
  tenant: 'acme',
  service,
  since: '2024-05-01T00:00:00Z',
  speaker: 'ada',
  after: EXPORT_CURSOR,
}

/** The threads of an export, and the cursor of its next page. */
export const exportContent = (schema: object): Content =>
  lines(
    { anyOf: [schema, contract.ExportNextSchema] },
    [thread, { next: EXPORT_CURSOR }],
    'A thread, and the cursor of the next page',
  )

/** References to the sources to delete, as lines or as an array. */
export const referencesContent = (schema: object, maxItems: number): Content => ({
  ...lines(schema, [{ service, externalId }, { id: SOURCE_ID }], 'A name, and an id'),
  ...json({ type: 'array', items: schema, minItems: 1, maxItems }, [{ service, externalId }]),
})

const deleted = { id: SOURCE_ID, outcome: 'deleted', quotes: 2 }
export const DELETED = json(contract.DeletionAnswerSchema, deleted)
export const DELETION_ACCEPTED = json(contract.AcceptedDeletionSchema, { id: SOURCE_ID })
const deletedItem = { index: 0, status: 200, ...deleted }
const deletedSummary = { received: 1, deleted: 1, absent: 0, failed: 0 }
export const DELETIONS = {
  ...lines(
    contract.DeletionLineSchema,
    [deletedItem, { summary: deletedSummary }],
    'The result of an item, and the summary',
  ),
  ...json(contract.DeletionsAnswerSchema, { results: [deletedItem], summary: deletedSummary }),
}

export const STORED = json(contract.ThreadAnswerSchema, {
  message: contract.MESSAGE,
  source: {
    id: SOURCE_ID,
    ...SOURCE,
    description: null,
    wordCount: 6,
    status: contract.STORED_STATUS,
    createdAt: '2024-05-01T09:30:00.000Z',
    outcome: 'created',
  },
  quotes: [{ id: QUOTE_ID, ...QUOTE, outcome: 'created' }],
})

export const ACCEPTED = json(contract.AcceptedAnswerSchema, {
  message: contract.MESSAGE,
  source: { ...SOURCE, description: null },
  quotes: [QUOTE],
})

const quotes = { created: 1, updated: 0, unchanged: 0 }
const item = {
  index: 0,
  externalId,
  status: 200,
  outcome: 'created',
  id: SOURCE_ID,
  wordCount: 6,
  quotes,
}
const summary = { received: 1, created: 1, updated: 0, unchanged: 0, failed: 0 }
export const IMPORT = {
  ...lines(
    contract.ImportLineSchema,
    [item, { summary }],
    'The result of an item, and the summary',
  ),
  ...json(contract.ImportAnswerSchema, { results: [item], summary }),
}

/**
 * Only the OpenAPI document has this rule: `parseOperationRequest` has its own check, with a better
 * message.
 */
const ONE_FIELD = { minProperties: 1, maxProperties: 1 }
export const OPERATION_REQUEST = json(
  { ...contract.OperationRequestSchema, ...ONE_FIELD },
  { filter: { tenant: 'acme', reason: 'validation' } },
  'The failed jobs of a tenant',
)

const IMPORTERS = {
  name: 'Importers',
  description: 'Post threads and look up what became of them.',
}

const TAGS = {
  importer: IMPORTERS,
  exporter: IMPORTERS,
  operator: {
    name: 'Operators',
    description:
      'Handle failed jobs of all tenants. A viewer may read, without payloads and quoted values.',
  },
  deleter: {
    name: 'Deletions',
    description:
      'Delete threads and messages. The key is an operator’s, or was created with `--deletes`.',
  },
  open: { name: 'Service', description: 'Needs no key.' },
} as const satisfies Record<Route['access'], { name: string; description: string }>

const ABOUT = `Receives conversation threads and keeps each exactly once.

- Every answer of 400 or more is a problem (RFC 9457) with a \`code\` of a closed list: see [/docs/problems](/docs/problems).
- A path that does not exist answers 404 \`route_unknown\`, another method of a path 405 \`method_not_allowed\` with \`Allow\`, and both 403 \`api_key_invalid\` without a key.
- A \`GET\` path answers \`HEAD\` too.`

/** Builds the document of these routes. */
export function describeRoutes(routes: readonly Route[]) {
  const paths: Record<string, Record<string, DescribedRoute>> = {}
  const schemas: Record<string, object> = {}
  const headers: Readonly<Record<string, object>> = ANSWER_HEADERS
  const move = moveNamed(schemas)
  for (const route of routes) {
    const described = changeEach(describeRoute(route), (part) =>
      move(withDouble(part)),
    ) as DescribedRoute
    paths[route.path] = { ...paths[route.path], [route.method]: described }
  }
  return {
    openapi: '3.1.1',
    info: { title: 'Sluice', version: '1', description: ABOUT },
    servers: [{ url: '/' }],
    tags: [...new Set(Object.values(TAGS))],
    paths,
    components: {
      schemas,
      headers,
      securitySchemes: {
        key: {
          type: 'apiKey',
          in: 'header',
          name: 'x-api-key',
          description: 'A key of the role that the path needs.',
        },
      },
    },
  }
}

type DescribedRoute = ReturnType<typeof describeRoute>
type DescribedAnswer = { description: string; headers: Record<string, object>; content: Content }

const ROLES: readonly KeyRole[] = ['importer', 'operator', 'viewer']

function describeRoute(route: Route) {
  const { id, access, method, summary, description = '', parameters = [], body } = route
  return {
    operationId: id,
    tags: [TAGS[access].name],
    summary,
    description: `${description} ${ANSWER_BOUNDS[route.bound]}`.trimStart(),
    security: ROLES.filter((role) => mayCall(role, access, method.toUpperCase())).map((role) => ({
      key: [role],
    })),
    parameters: [...parameters, REQUEST_ID],
    ...(body !== undefined && {
      requestBody: { required: true, description: CODINGS, content: body },
    }),
    responses: describeAnswers(route),
  }
}

const CODINGS = 'May be compressed: `Content-Encoding` is then gzip, br, deflate or zstd.'

type Codes = readonly contract.ProblemCode[]

/** The problems that a request to any route can meet. */
const ANY: Codes = [
  'body_unreadable',
  'idempotency_key_invalid',
  'request_timeout',
  'expectation_unknown',
  'transfer_coding_unsupported',
  'headers_too_large',
  'internal',
  'overloaded',
]
const KEYED: Codes = ['api_key_invalid', 'keys_unavailable', ...ANY]
/** The problems that a request can meet because of its route's access. */
const ACCESS_PROBLEMS = {
  open: ANY,
  importer: ['importer_only', ...KEYED],
  // Every route for operators needs Redis.
  operator: ['operator_only', ...KEYED, 'queue_unavailable'],
  exporter: ['importer_only', ...KEYED],
  deleter: ['deletes_forbidden', ...KEYED],
} as const satisfies Record<Route['access'], Codes>

/** The problems of a request with a body. */
const BODY_PROBLEMS: Codes = [
  'json_invalid',
  'request_invalid',
  'body_too_large',
  'media_type_unsupported',
  'charset_unsupported',
  'encoding_unsupported',
  'stopping',
]

/** The problems of a request that adds to the queue. */
const ENQUEUING: Codes = [
  'rate_limited',
  'queue_unavailable',
  'queue_full',
  'tenant_share',
  'acceptance_unknown',
]

/** The headers of every answer. */
const ALWAYS = ['X-Request-Id', 'Cache-Control'] as const

function describeAnswers(route: Route): Record<string, DescribedAnswer> {
  const answers: Record<string, DescribedAnswer> = {}
  const ofPost: readonly HeaderName[] =
    route.method === 'get' ? [] : ['RateLimit', 'RateLimit-Policy']
  for (const [status, [description, content, headers = []]] of Object.entries(route.answers))
    answers[status] = {
      description,
      headers: headerRefs([...ALWAYS, ...headers, ...ofPost]),
      content,
    }
  const problems = new Set([
    ...ACCESS_PROBLEMS[route.access],
    ...(route.body === undefined ? [] : BODY_PROBLEMS),
    ...(enqueues(route) ? ENQUEUING : []),
    ...(route.parameters?.some((parameter) => parameter.in === 'query')
      ? (['request_invalid'] as const)
      : []),
    ...(route.problems ?? []),
    ...(route.path.includes('{') ? (['route_unknown'] as const) : []),
  ])
  for (const [status, ofStatus] of Object.entries(
    Object.groupBy(problems, (code) => String(contract.PROBLEMS[code].status)),
  )) {
    const problem = describeProblems(ofStatus ?? [], route.problemHeaders ?? [])
    const other = answers[status]
    answers[status] =
      other === undefined
        ? problem
        : { ...other, content: { ...other.content, ...problem.content } }
  }
  return answers
}

/** The headers of a problem, by its status. */
const PROBLEM_HEADERS: Readonly<Record<number, readonly HeaderName[]>> = {
  415: ['Accept-Encoding'],
  429: ['Retry-After', 'RateLimit', 'RateLimit-Policy'],
  503: ['Retry-After'],
  504: ['Location'],
}

/** The answer for one status, which reports any of these problems. */
function describeProblems(ofStatus: Codes, more: readonly HeaderName[]): DescribedAnswer {
  const [first = 'internal'] = ofStatus
  const headers = headerRefs([
    ...ALWAYS,
    ...(PROBLEM_HEADERS[contract.PROBLEMS[first].status] ?? []),
    ...more,
  ])
  const description = ofStatus
    .map((code) => `[${code}](${contract.problemType(code)}): ${contract.PROBLEMS[code].title}`)
    .join('\n\n')
  const schema = { $ref: '#/components/schemas/Problem', properties: { code: { enum: ofStatus } } }
  return { description, headers, content: { [contract.PROBLEM_MEDIA_TYPE]: { schema } } }
}

function headerRefs(names: readonly HeaderName[]): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

type Part = Readonly<Record<string, unknown>>

/**
 * Copies a part of the document, and changes each object in it, the innermost first. Examples are
 * data, so they stay.
 */
function changeEach(value: unknown, change: (part: Part) => Part): unknown {
  if (Array.isArray(value)) return value.map((element) => changeEach(element, change))
  if (typeof value !== 'object' || value === null) return value
  const parts = Object.entries(value).map(([name, part]) => [
    name,
    EXAMPLES.has(name) ? part : changeEach(part, change),
  ])
  return change(Object.fromEntries(parts))
}

/**
 * The values of these names are data and no schemas. For example, an example of a source has a
 * title, too.
 */
const EXAMPLES = new Set(['example', 'examples', 'const', 'enum'])

/**
 * Adds a format to numbers: without it, generated clients in Go would read numbers as floats of 32
 * bits.
 */
function withDouble(part: Part): Part {
  return [part.type].flat().includes('number') ? { ...part, format: 'double' } : part
}

/**
 * Makes a function that moves each schema with a title to `schemas`, under the name of its title.
 * Schemas with the same title must be equal, because the last one replaces the others.
 */
function moveNamed(schemas: Record<string, object>): (part: Part) => Part {
  return (part) => {
    if (typeof part.title !== 'string' || typeof part.type !== 'string') return part
    schemas[part.title] = part
    return { $ref: `#/components/schemas/${part.title}` }
  }
}
