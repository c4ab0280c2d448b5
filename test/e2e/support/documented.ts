// Finds the part of an answer that `/openapi.json` lacks: its status, its code, a header, a field.
import assert from 'node:assert/strict'
import { describeApi } from '@sluice/api/openapi'
import {
  DEFAULT_LIMITS,
  PROBLEM_MEDIA_TYPE,
  type ProblemCode,
  problemType,
  WELL_FORMED,
} from '@sluice/contract'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

/** The answer to one request. */
export interface Reply {
  status: number
  headers: Headers
  text: string
}

/** The description of the API with the default limits. No answer depends on them. */
const description = describeApi(DEFAULT_LIMITS)

const validator = formats.default(new Ajv2020({ allErrors: true, strict: false }))
validator.addFormat(WELL_FORMED, (text) => text.isWellFormed())
validator.addSchema(Object(closed(description)), 'api')

/** OpenAPI does not list these headers: they belong to the connection, or are the media type. */
const TRANSPORT = new Set([
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
])

/**
 * The problems of a path or method that no route has: those of any request, and those that say so.
 */
const EARLY: readonly ProblemCode[] = [
  'api_key_invalid',
  'keys_unavailable',
  'overloaded',
  'internal',
  'body_unreadable',
  'idempotency_key_invalid',
  'expectation_unknown',
  'transfer_coding_unsupported',
  'headers_too_large',
  'route_unknown',
]
const OTHER_METHOD: readonly ProblemCode[] = [
  ...EARLY,
  'method_not_allowed',
  'importer_only',
  'operator_only',
  'deletes_forbidden',
]

const templates = Object.keys(description.paths)
  // A path without a parameter comes first, as in the router.
  .toSorted((one, other) => Number(one.includes('{')) - Number(other.includes('{')))
  .map((path) => ({ path, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`) }))

/** All routes, such as `GET /sources/{id}`. */
export const ROUTES = Object.entries(description.paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
)

/** Returns the path of a request as ROUTES has it, or undefined if no route has the path. */
export function pathOf(target: string): string | undefined {
  return templates.find(({ pattern }) => pattern.test(target.split(/[?#]/, 1)[0] ?? ''))?.path
}

/**
 * Returns the first part of an answer that is not documented. Undefined if everything is.
 *
 * @param target the path of the request, with its query and, if a caller sends one, its fragment.
 */
export function undocumentedIn(method: string, target: string, reply: Reply): string | undefined {
  const path = pathOf(target)
  if (path === undefined) return faultOfRefusal(EARLY, reply)
  const name = method === 'HEAD' ? 'get' : method.toLowerCase()
  if (description.paths[path]?.[name] === undefined) return faultOfRefusal(OTHER_METHOD, reply)
  const at = ['paths', path, name, 'responses', String(reply.status)]
  const answer = description.paths[path][name].responses[reply.status]
  if (answer === undefined) return `a ${reply.status}`
  const undocumented = faultOfHeaders(Object.keys(answer.headers), reply)
  if (undocumented !== undefined) return undocumented
  return method === 'HEAD' ? faultOfHead(reply) : faultOfBody([...at, 'content'], reply)
}

/** An answer that no route gave: nothing is at its path, or the path has other methods. */
function faultOfRefusal(codes: readonly ProblemCode[], reply: Reply): string | undefined {
  const names = [
    'X-Request-Id',
    'Cache-Control',
    ...(reply.status === 405 ? ['Allow'] : []),
    ...(reply.status === 503 ? ['Retry-After'] : []),
  ]
  const fault =
    faultOfHeaders(names, reply) ??
    (reply.text === '' ? undefined : faultOfProblem(isProblem, reply))
  if (fault !== undefined || reply.text === '') return fault
  const { code } = JSON.parse(reply.text)
  return codes.includes(code) ? undefined : `the code ${code}`
}

function faultOfHeaders(names: readonly string[], { headers }: Reply): string | undefined {
  const known = new Set(names.map((name) => name.toLowerCase()))
  const unknown = [...headers.keys()].filter((name) => !known.has(name) && !TRANSPORT.has(name))
  if (unknown.length > 0) return `headers ${unknown.join(', ')}`
  return names
    .map((name) => faultOfHeader(name, headers.get(name)))
    .find((fault) => fault !== undefined)
}

function faultOfHeader(name: string, value: string | null): string | undefined {
  const { required = false } = Object(description.components.headers[name])
  if (value === null) return required ? `no ${name}` : undefined
  const isValid = compiled(['components', 'headers', name, 'schema'])
  return isValid?.(value) || isValid?.(Number(value)) ? undefined : `${name}: ${value}`
}

function faultOfHead({ status, text }: Reply): string | undefined {
  return text === '' ? undefined : `a ${status} with a body after HEAD`
}

function faultOfBody(at: readonly string[], reply: Reply): string | undefined {
  const mediaType = reply.headers.get('content-type') ?? 'nothing'
  const isValid = compiled([...at, mediaType, 'schema'])
  if (isValid === undefined) return `a ${reply.status} as ${mediaType}`
  if (mediaType === PROBLEM_MEDIA_TYPE) return faultOfProblem(isValid, reply)
  const isItem = compiled([...at, mediaType, 'x-itemSchema'])
  if (isItem !== undefined)
    return linesOf(reply.text)
      .map((line) => faultOf(isItem, JSON.parse(line)))
      .find(Boolean)
  return faultOf(isValid, mediaType === 'application/json' ? JSON.parse(reply.text) : reply.text)
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '')
}

/** Every problem repeats its status and request id, and every 400 lists its faults. */
function faultOfProblem(
  isValid: ValidateFunction,
  { status, headers, text }: Reply,
): string | undefined {
  if (headers.get('content-type') !== PROBLEM_MEDIA_TYPE)
    return `a problem as ${headers.get('content-type')}`
  const body = JSON.parse(text)
  const fault = faultOf(isValid, body)
  if (fault !== undefined) return fault
  if (body.status !== status) return `${body.code} as ${status}`
  if (body.type !== problemType(body.code)) return `the type ${body.type}`
  if (body.requestId !== headers.get('x-request-id')) return 'another requestId'
  const { errors = [], total = 0 } = body
  return status === 400 && (errors.length === 0 || total < errors.length)
    ? 'a 400 without its faults'
    : undefined
}

function faultOf(isValid: ValidateFunction, value: unknown): string | undefined {
  return isValid(value) ? undefined : validator.errorsText(isValid.errors)
}

/** The validator of the schema at this place of the description. Undefined if nothing is there. */
function compiled(at: readonly string[]): ValidateFunction | undefined {
  const names = at.map((name) =>
    encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1')),
  )
  return validator.getSchema(`api#/${names.join('/')}`)
}

/**
 * Closes every object with known fields: a field that the description lacks is a fault here, and
 * only here.
 */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const copy = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, closed(value)]),
  )
  return copy.type === 'object' && 'properties' in copy
    ? { additionalProperties: false, ...copy }
    : copy
}

/** Checks a problem: all of its fields are documented. */
export const isProblem =
  compiled(['components', 'schemas', 'Problem']) ??
  assert.fail('the description has no schema of a problem')
