// Says what of an answer the documents do not have: its status, its code, a header, a member of its body.
import { PROBLEM_MEDIA_TYPE, PROBLEMS, type ProblemCode } from '@sluice/contract'
import type { Reply } from '../../e2e/support/caller.ts'
import {
  type Check,
  isAcceptedThread,
  isAlive,
  isFailedJob,
  isFailedJobPage,
  isImport,
  isImportAnswer,
  isItem,
  isJob,
  isLimits,
  isOperation,
  isProblem,
  isReady,
  isSourcePage,
  isStoredThreadOrPage,
  isSummaryLine,
} from './contract-schemas.ts'

/** The documented answers of one route: the schema of each success, and the problems that its callers can cause. */
export interface DocumentedRoute {
  successes: Readonly<Record<number, Check>>
  problems: readonly ProblemCode[]
}

const keyed: ProblemCode[] = ['api_key_invalid', 'importer_only', 'method_not_allowed']
const admin: ProblemCode[] = ['api_key_invalid', 'operator_only', 'method_not_allowed', 'route_unknown']
const bodies: ProblemCode[] = [
  'body_too_large',
  'media_type_unsupported',
  'charset_unsupported',
  'encoding_unsupported',
  'body_unreadable',
  'json_invalid',
  'request_invalid',
]

/** Every route of the API, by the text of its path in the route table. */
export const DOCUMENTED: Readonly<Record<string, DocumentedRoute>> = {
  '/sources': {
    successes: { 200: isStoredThreadOrPage, 202: isAcceptedThread },
    problems: [...keyed, ...bodies, 'source_unknown'],
  },
  '/sources/:id': {
    successes: { 200: isSourcePage },
    problems: [...keyed, 'request_invalid', 'source_unknown', 'route_unknown'],
  },
  '/sources\\:batch': { successes: { 200: isImportAnswer, 202: isImport }, problems: [...keyed, ...bodies] },
  '/batches/:id': { successes: { 200: isImport }, problems: [...keyed, 'import_unknown', 'route_unknown'] },
  '/jobs/:id': { successes: { 200: isJob }, problems: [...keyed, 'job_unknown', 'route_unknown'] },
  '/admin/jobs': { successes: { 200: isFailedJobPage }, problems: [...admin, 'request_invalid'] },
  '/admin/jobs/:id': { successes: { 200: isFailedJob }, problems: [...admin, 'job_unknown'] },
  '/admin/jobs\\:retry': { successes: { 202: isOperation }, problems: [...admin, ...bodies, 'operations_full'] },
  '/admin/jobs\\:discard': { successes: { 202: isOperation }, problems: [...admin, ...bodies, 'operations_full'] },
  '/admin/operations/:id': { successes: { 200: isOperation }, problems: [...admin, 'operation_unknown'] },
  '/limits': { successes: { 200: isLimits }, problems: ['method_not_allowed'] },
  '/livez': { successes: { 200: isAlive }, problems: ['method_not_allowed'] },
  '/readyz': { successes: { 200: isReady }, problems: ['method_not_allowed'] },
}

/** A path that no route has, or that ends in an id that nothing has. */
export const NOWHERE: DocumentedRoute = {
  successes: {},
  problems: [
    'api_key_invalid',
    'route_unknown',
    'source_unknown',
    'job_unknown',
    'import_unknown',
    'operation_unknown',
  ],
}

const HEADERS = new Set([
  'accept-encoding',
  'allow',
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'location',
  'preference-applied',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'transfer-encoding',
  'x-request-id',
])
const SERVER_FAULT = 500

/** What is not documented of an answer. Undefined if nothing is. A 5xx is documented only where a bound may be hit. */
export function undocumentedIn(route: DocumentedRoute, method: string, reply: Reply): string | undefined {
  const { status, headers, text } = reply
  const unknown = [...headers.keys()].filter((name) => !HEADERS.has(name))
  if (unknown.length > 0) return `headers ${unknown.join(', ')}`
  if (!/^[\x21-\x7e]{1,128}$/.test(headers.get('x-request-id') ?? '')) return 'no X-Request-Id'
  if (method === 'HEAD') return text === '' && status < SERVER_FAULT ? undefined : `a ${status} with a body after HEAD`
  return status >= 400 ? faultOfProblem(route, reply) : faultOfSuccess(route, reply)
}

function faultOfProblem({ problems }: DocumentedRoute, { status, headers, text }: Reply): string | undefined {
  if (headers.get('content-type') !== PROBLEM_MEDIA_TYPE) return `a problem as ${headers.get('content-type')}`
  const body = JSON.parse(text)
  const fault = isProblem(body)
  if (fault !== undefined) return fault
  const code = problems.find((known) => known === body.code)
  if (code === undefined) return `the code ${body.code}`
  if (PROBLEMS[code].status !== status || body.status !== status) return `${code} as ${status}`
  if (body.requestId !== headers.get('x-request-id')) return 'another requestId'
  const { errors = [], total = 0 } = body
  return status === 400 && (errors.length === 0 || total < errors.length) ? 'a 400 without its faults' : undefined
}

function faultOfSuccess({ successes }: DocumentedRoute, { status, headers, text }: Reply): string | undefined {
  const check = successes[status]
  if (check === undefined) return `a ${status}`
  const type = headers.get('content-type')
  if (type === 'application/x-ndjson') return faultOfLines(text)
  return type === 'application/json' ? check(JSON.parse(text)) : `a ${status} as ${type}`
}

function faultOfLines(text: string): string | undefined {
  const lines = text.trimEnd().split('\n')
  const last = lines.pop() ?? ''
  return lines.map((line) => isItem(JSON.parse(line))).find((fault) => fault) ?? isSummaryLine(JSON.parse(last))
}
