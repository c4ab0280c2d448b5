// Builds the OpenAPI 3.1 document of the API from the route table, and thus from the schemas that
// validate requests.

import { PROBLEM_MEDIA_TYPE, PROBLEMS, type ProblemCode, problemType } from '@sluice/contract'
import type { KeyRole } from '@sluice/credentials/keys'
import { mayCall } from '../request/middleware.ts'
import type { Content, HeaderName, Route } from './route.ts'
import { ANSWER_BOUNDS, ANSWER_HEADERS, enqueues, REQUEST_ID } from './route.ts'

type DescribedRoute = ReturnType<typeof describeRoute>
type DescribedAnswer = { description: string; headers: Record<string, object>; content: Content }

type Codes = readonly ProblemCode[]

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

function describeAnswers(route: Route): Record<string, DescribedAnswer> {
  const answers: Record<string, DescribedAnswer> = {}
  const ofPost: readonly HeaderName[] =
    route.method === 'get' ? [] : ['RateLimit', 'RateLimit-Policy']
  for (const [status, [description, content, headers = []]] of Object.entries(route.answers))
    answers[status] = {
      description,
      headers: headerRefs(['X-Request-Id', ...headers, ...ofPost]),
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
    Object.groupBy(problems, (code) => String(PROBLEMS[code].status)),
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
    'X-Request-Id',
    ...(PROBLEM_HEADERS[PROBLEMS[first].status] ?? []),
    ...more,
  ])
  const description = ofStatus
    .map((code) => `[${code}](${problemType(code)}): ${PROBLEMS[code].title}`)
    .join('\n\n')
  const schema = { $ref: '#/components/schemas/Problem', properties: { code: { enum: ofStatus } } }
  return { description, headers, content: { [PROBLEM_MEDIA_TYPE]: { schema } } }
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
