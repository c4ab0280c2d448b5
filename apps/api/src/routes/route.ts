// What a route is: how it is served and described, with the headers and parameters that routes share.
import { NDJSON, type ProblemCode } from '@sluice/contract'
import type { ApiDeps } from '../api-deps.ts'
import type { Access } from '../request/middleware.ts'
import type { Handler } from '../request/request-context.ts'
import { KEY_FORM } from '../sources/later-answers.ts'

/** One route of the API, without the problems and parameters that follow from its access, its method and its body. */
export interface Route {
  method: 'get' | 'post'
  /** As OpenAPI writes it: `/jobs/{id}`. */
  path: string
  /** Routes of one path have the same access. */
  access: Access
  handler: (deps: ApiDeps) => Handler
  /** Its name in generated clients. */
  id: string
  summary: string
  description?: string
  /** A route without the parameter Idempotency-Key refuses requests that have one: their callers would rely on it. */
  parameters?: readonly Parameter[]
  body?: Content
  /** A POST that adds nothing to the queue, so the queue's bounds do not apply. */
  onlyReads?: true
  /** The answers that are no problems, by status. */
  answers: Readonly<Record<number, readonly [description: string, content: Content, headers?: readonly HeaderName[]]>>
  problems?: readonly ProblemCode[]
  /** Headers that any of these problems may have besides its usual ones. */
  problemHeaders?: readonly HeaderName[]
}

/** Whether a route adds to the queue. Routes of operators must work while the queue accepts nothing. */
export function enqueues({ method, access, onlyReads }: Pick<Route, 'method' | 'access' | 'onlyReads'>): boolean {
  return method === 'post' && access === 'importer' && !onlyReads
}

/** The forms of a body, by media type. */
export type Content = Readonly<Record<string, MediaType>>

export interface MediaType {
  schema: object
  /** The schema of each line, where a body has lines: OpenAPI 3.1 can describe a sequence only as text. */
  'x-itemSchema'?: object
  examples?: Readonly<Record<string, { summary: string; value: unknown }>>
}

/** The example is in `schema`: Swagger UI would fill its forms with an example that stands beside the schema. */
export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  schema: object
}

/** A body in JSON. */
export function json(schema: object, value?: unknown, summary = 'An example'): Content {
  return { 'application/json': { schema, ...(value !== undefined && { examples: { example: { summary, value } } }) } }
}

/** A body in lines, with the schema of each line. */
export function lines(itemSchema: object, values: readonly object[], summary: string): Content {
  const schema = { type: 'string', contentMediaType: NDJSON, description: 'JSON texts, one on each line.' }
  const value = values.map((line) => `${JSON.stringify(line)}\n`).join('')
  return { [NDJSON]: { schema, 'x-itemSchema': itemSchema, examples: { lines: { summary, value } } } }
}

export const EXAMPLE_ID = '3f0c9a52-7a6e-4b57-9d0c-0d4c6c1d2f10'

/** A parameter of a path. @param more adds to its schema. */
export function pathParameter(name: string, more: object, description?: string): Parameter {
  const schema = { type: 'string', ...more }
  return { name, in: 'path', required: true, ...(description !== undefined && { description }), schema }
}

/** The parameter `id` of a path, of what has a random id. */
export function idOf(what: string): Parameter {
  return pathParameter('id', { format: 'uuid', examples: [EXAMPLE_ID] }, `The id of ${what}.`)
}

/** The parameters of a query, from the schema that checks it. The examples are valid together. */
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
  return { name, in: 'header', description, schema: { type: 'string', ...more, examples: [example] } }
}

export const REQUEST_ID = header(
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

export const PREFER_WAIT = header('Prefer', '`wait=N` waits at most N seconds for the end of the job.', 'wait=5')

/** Headers of answers. `always`: each answer whose description lists the header has it. */
const optional = (description: string, example: string, more: object = {}) => ({
  description,
  schema: { type: 'string', ...more, examples: [example] },
})
const always = (description: string, example: string | number, more: object = {}) => ({
  description,
  required: true,
  schema: { type: typeof example === 'number' ? 'integer' : 'string', ...more, examples: [example] },
})

export const ANSWER_HEADERS = {
  'X-Request-Id': always('Your id of the request, or a new one.', EXAMPLE_ID, { pattern: '^[\\x21-\\x7e]{1,128}$' }),
  Location: optional('The path of the progress or page.', `/jobs/${EXAMPLE_ID}`, { format: 'uri-reference' }),
  'Preference-Applied': optional('The preferences that took effect (RFC 7240).', 'respond-async'),
  'Retry-After': always('Wait this many seconds before you send the request again.', 7, { minimum: 1 }),
  'RateLimit-Policy': optional(
    'The quota of the key (draft-ietf-httpapi-ratelimit-headers-11).',
    '"quotes";q=600000;w=60;sluice-unit="quotes"',
  ),
  RateLimit: optional('What is left of the quota (`r`), and when it is full, or has more (`t`).', '"quotes";r=0;t=7'),
  Allow: always('The methods of the path.', 'GET, HEAD'),
  'Accept-Encoding': optional('The content codings that the service reads.', 'gzip, br, deflate, zstd'),
  'Cache-Control': always('How long the file may be kept.', 'no-cache'),
  'Content-Encoding': optional('How the file is compressed. Absent if the caller accepts no gzip.', 'gzip'),
  Vary: always('The headers of the request on which the answer depends.', 'accept-encoding'),
  'X-Content-Type-Options': always('Keeps browsers from guessing another type.', 'nosniff'),
  'Content-Security-Policy': always('What the page may load: only files of its own origin.', "default-src 'self'"),
} as const

export type HeaderName = keyof typeof ANSWER_HEADERS
