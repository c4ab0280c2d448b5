// The middleware that each request passes through: opens the context, checks the key, admits the
// request, handles it, and sends the answer.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { NO_PREFERENCES, PROBLEM_MEDIA_TYPE, parsePrefer } from '@sluice/contract'
import type { KeyRole } from '@sluice/credentials/keys'
import { redactKeys, SpanKind, startSpan, traceIdOf, traceparentOf } from '@sluice/process'
import type { RequestHandler } from 'express'
import type { ApiDeps, MiddlewareDeps } from '../api-deps.ts'
import {
  bodyUnreadable,
  CallerGoneError,
  keyRefused,
  overloaded,
  ProblemError,
  QUOTA_POLICY,
} from './problem-error.ts'
import type {
  Answer,
  Handler,
  PathParams,
  RequestContext,
  RequestResult,
} from './request-context.ts'
import { STREAMED, safeRequestId } from './request-context.ts'

export type Locals = { context: RequestContext }
type Middleware = RequestHandler<PathParams, unknown, unknown, unknown, Locals>

const CALLER_GONE = new CallerGoneError('the caller hung up')

/**
 * Makes the signals of requests. They abort when the response closes, or when the grace time is
 * over.
 */
export function createRequestSignals(
  graceOver: AbortSignal,
): (response: ServerResponse) => AbortSignal {
  // Adding a listener to a signal walks through all its listeners. So there is one listener, and a
  // set of open requests.
  const open = new Set<AbortController>()
  graceOver.addEventListener('abort', () => {
    for (const controller of open) controller.abort(new ProblemError('stopping'))
  })
  return (response) => {
    const controller = new AbortController()
    if (graceOver.aborted) controller.abort(new ProblemError('stopping'))
    if (response.destroyed) controller.abort(CALLER_GONE)
    open.add(controller)
    response.once('close', () => {
      open.delete(controller)
      controller.abort(CALLER_GONE)
    })
    return controller.signal
  }
}

/** Opens the context of a request, and refuses an invalid head. */
export function openContext({ graceOver }: MiddlewareDeps): Middleware {
  const signalOf = createRequestSignals(graceOver)
  return (request, response, next) => {
    response.on('error', () => {}) // The caller hung up. 'close' follows.
    const { 'x-request-id': id } = request.headers
    let signal: AbortSignal | undefined
    response.locals.context = {
      requestId: id === undefined ? randomUUID() : safeRequestId(id),
      request,
      response,
      path: redactKeys(request.url?.split('?', 1)[0] ?? ''),
      route: 'none',
      // Created at its first use, so that a flood of refused requests does not create a controller
      // for each.
      get signal() {
        signal ??= signalOf(response)
        return signal
      },
      startedAt: performance.now(),
      tenant: '',
      prefer: NO_PREFERENCES,
      chargedBytes: 0,
      log: {},
    }
    checkHead(request)
    next()
  }
}

/** A host and a port in the form that the header Host allows (RFC 9110, section 7.2). */
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.v]+\])(?::\d*)?$/i

/**
 * Refuses a head that HTTP does not allow, a transfer coding other than `chunked` (RFC 9112,
 * section 6.1), and an expectation other than `100-continue` (RFC 9110, section 10.1.1).
 */
function checkHead({ headers, httpVersion, rawHeaders }: IncomingMessage): void {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    throw bodyUnreadable('not_http', 'The version must be HTTP/1.1 or HTTP/1.0.')
  // Node keeps only the first Host header, but a proxy may have used another one.
  const isHost = (name: string, at: number) =>
    at % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host'
  const hosts = rawHeaders.filter(isHost).length
  if (hosts === 0 && httpVersion === '1.1')
    throw bodyUnreadable('not_http', 'The header Host is missing.')
  if (hosts > 1) throw bodyUnreadable('not_http', 'The header Host may be given only once.')
  const { host = '', expect = '100-continue', 'transfer-encoding': coding = 'chunked' } = headers
  if (!HOST.test(host)) throw bodyUnreadable('not_http', 'The header Host is not valid.')
  // Node accepts other codings in front of `chunked`, and would pass on the body still encoded.
  if (coding.trim().toLowerCase() !== 'chunked')
    throw new ProblemError('transfer_coding_unsupported')
  if (expect.toLowerCase() !== '100-continue') throw new ProblemError('expectation_unknown')
}

/** Checks the key before any byte of the body is read. */
export function authenticate({ keyring, quota }: MiddlewareDeps): Middleware {
  return async (request, response, next) => {
    const header = request.headers['x-api-key']
    const { context } = response.locals
    context.checkKey = async () => {
      const check = await keyring.find(typeof header === 'string' ? header : undefined)
      if (check.outcome === 'unknown') context.refusedKey = check
      if (check.outcome !== 'known') throw keyRefused(check.outcome, request.headers)
      return check
    }
    const check = await context.checkKey()
    context.key = check
    context.tenant = check.tenant
    if (request.headers.prefer !== undefined) context.prefer = parsePrefer(request.headers.prefer)
    context.quota = { keyId: check.keyId, ...(check.limits ?? quota) }
    // So that the log says which operator retried or discarded jobs.
    if (check.role !== 'importer') context.log[check.role] = check.keyId
    next()
  }
}

/**
 * Who may call a route: everybody, a key of this role, a key that may export (an importer's, or an
 * operator's that names the tenant), or a key that may delete (an operator's, or an importer's that
 * was created so).
 */
export type Access = 'open' | Exclude<KeyRole, 'viewer'> | 'exporter' | 'deleter'

const REFUSALS = {
  importer: 'importer_only',
  operator: 'operator_only',
  exporter: 'importer_only',
  deleter: 'deletes_forbidden',
} as const

/**
 * Opens a route to a request: records the route in the context, begins a span if the request is
 * traced, and refuses a key of another role.
 */
export function openRoute({ settings }: MiddlewareDeps, path: string, access: Access): Middleware {
  return ({ method, headers }, { locals: { context } }, next) => {
    context.route = path
    if (access === 'open') return next()
    const traceparent = typeof headers.traceparent === 'string' ? headers.traceparent : undefined
    if (settings.otlpEndpoint !== null || traceparent !== undefined) {
      const attributes = {
        'http.request.method': method,
        'http.route': path,
        'sluice.request_id': context.requestId,
      }
      context.span = startSpan(`${method} ${path}`, traceparent, {
        kind: SpanKind.SERVER,
        attributes,
      })
    }
    const { role, deletes } = context.key ?? {}
    const lacksRight = access === 'deleter' && role === 'importer' && deletes !== true
    if (lacksRight || !mayCall(role, access, method)) throw new ProblemError(REFUSALS[access])
    next()
  }
}

/** Returns whether a key of this role may call a route. A viewer may read what operators read. */
export function mayCall(role: KeyRole | undefined, access: Access, method: string): boolean {
  if (role === 'viewer') return access === 'operator' && (method === 'GET' || method === 'HEAD')
  return access === 'exporter' || access === 'deleter' ? role !== undefined : role === access
}

/** Admits a request, handles it, and sends its answer. */
export function handleRequest(
  deps: MiddlewareDeps,
  handler: Handler,
  enqueues: boolean,
): Middleware {
  return async (request, { locals: { context } }) => {
    if (enqueues) admit(deps, context)
    finish(deps, context, await handler(context, request.params))
  }
}

/** On a machine with few cores, people meet this refusal first. */
const LAGS =
  'The process lacks time: its event loop lags by more than MAX_LOOP_DELAY_MS. The request was not accepted, and never will be.'

/**
 * Refuses a post or a deletion before its body is read: if the key's quota or a bound of the queue
 * is used up (by a copy that is at most 250 ms old), if Redis does not answer, or if the event loop
 * lags, because each further request delays all others.
 */
function admit({ enqueuer, loopDelay, settings }: MiddlewareDeps, context: RequestContext): void {
  if (loopDelay.p99Ms > settings.maxLoopDelayMs) throw overloaded(LAGS)
  const { tenant, quota, path, prefer, request } = context
  const isOne = path === '/sources' || request.method === 'DELETE'
  const lane = isOne && prefer.waits ? 'interactive' : 'bulk'
  enqueuer.admit({ tenant, ...(quota !== undefined && { quota }) }, lane)
}

/** Bounds the path in the log, so that a caller without a key can't fill the disk. */
const SHOWN_PATH = 200

/**
 * If a caller, or a proxy in front of it, hangs up on a job after this time, it counts as having
 * waited in vain.
 */
const PATIENCE_MS = 1_000

/** Sends the answer of a request, counts it, and writes its one log line. */
export function finish(deps: MiddlewareDeps, context: RequestContext, result: RequestResult): void {
  const { metrics, log, enqueuer } = deps
  const { requestId, path, route, tenant, quota, request, chargedBytes, span, key, refusedKey } =
    context
  const { method = '' } = request
  const status = send(deps, context, result)
  // A refused text is charged, because reading and parsing it costs as much as accepting it. So is
  // a large answer.
  if (chargedBytes > 0 && quota !== undefined && (status === 'gone' || status < 500))
    enqueuer.charge({ tenant, quota }, Math.ceil(chargedBytes / 1024))
  const durationMs = Math.round((performance.now() - context.startedAt) * 10) / 10
  const isLate = status === 'gone' && durationMs >= PATIENCE_MS && context.log.jobId !== undefined
  metrics.requests.inc({ route, method, status: isLate ? 'late' : String(status) })
  metrics.requestTime.observe({ route }, durationMs / 1000)
  if (status === 403) deps.noteRefusedKey(key ?? refusedKey)
  if (typeof context.log.code === 'string') deps.noteProblem(context.log.code, context)
  const trace = traceparentOf(span)
  const fields = {
    requestId,
    traceId: trace && traceIdOf(trace),
    method,
    path: path.slice(0, SHOWN_PATH),
    status,
    // Only operators may learn to whom a refused key belonged. The caller gets the same answer as
    // for an unknown key.
    tenant: refusedKey?.tenant ?? tenant,
    keyId: (key ?? refusedKey)?.keyId,
    keyRefused: refusedKey?.why,
    ...context.log,
    durationMs,
  }
  span?.setAttribute('http.response.status_code', Number(status) || 499).end()
  // An answer that fails after its head has no status, but its error.
  const hasFailed = Number(status) >= 500 || context.log.err !== undefined
  log[hasFailed ? 'warn' : 'info'](fields, 'request.answered')
}

/** Sends an answer. Returns its status, or `gone` if the caller can't get the answer. */
function send(
  deps: MiddlewareDeps,
  context: RequestContext,
  result: RequestResult,
): number | 'gone' {
  const { request, response } = context
  if (result === STREAMED) return response.statusCode
  if (result === 'gone' || response.closed || response.headersSent) {
    // An answer that has begun can't be replaced. Cut the connection, so that its reader sees that
    // it is incomplete.
    response.destroy()
    return 'gone'
  }
  const content = 'body' in result ? JSON.stringify(result.body) : result.content
  // Not by Express's `response.json`, which would add a charset: JSON has none (RFC 8259).
  const headers = { 'content-length': String(Buffer.byteLength(content)), ...result.headers }
  writeHead(deps, context, { status: result.status, headers }, isUnread(request))
  response.end(request.method === 'HEAD' ? undefined : content)
  return result.status
}

/** Returns whether some of the body was not read yet, unless the caller will not send it. */
function isUnread({ readableEnded, destroyed, headers }: IncomingMessage): boolean {
  if (readableEnded || destroyed) return false
  // A caller that asked to continue, but got an answer instead, does not send its body.
  if (headers.expect !== undefined) return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Writes the head of an answer. `closes`: the connection closes after the answer. */
export function writeHead(
  {
    enqueuer,
    stopping,
  }: Pick<ApiDeps, 'stopping'> & { enqueuer: Pick<ApiDeps['enqueuer'], 'quotaLeft'> },
  context: RequestContext,
  answer: Pick<Answer, 'status' | 'headers'>,
  closes = false,
): void {
  context.response.writeHead(answer.status, {
    'content-type': answer.status >= 400 ? PROBLEM_MEDIA_TYPE : 'application/json',
    'x-request-id': context.requestId,
    // A shared cache does not know the header of the key, so it would give a tenant's answer to all.
    'cache-control': 'no-store',
    ...answer.headers,
    ...quotaHeaders(enqueuer, context, answer),
    ...((closes || stopping.aborted) && { connection: 'close' }),
  })
}

/**
 * Makes the headers of draft-ietf-httpapi-ratelimit-headers-11. The draft wants a window. A token
 * bucket has none, so `w` is the time to refill an empty bucket. The draft has no unit for quotes,
 * so our own parameter `sluice-unit` names it.
 */
function quotaHeaders(
  { quotaLeft }: Pick<ApiDeps['enqueuer'], 'quotaLeft'>,
  { request, quota }: Pick<RequestContext, 'request' | 'quota'>,
  { status, headers }: Pick<Answer, 'status' | 'headers'>,
): Answer['headers'] {
  const isUsedUp = status === 429
  const reads = request.method === 'GET' || request.method === 'HEAD'
  if (quota === undefined || (reads && !isUsedUp)) return undefined
  const left = isUsedUp ? 0 : status < 300 ? quotaLeft(quota) : undefined
  if (left === undefined) return undefined
  const { burstQuotes, quotesPerSecond } = quota
  // The time until the caller may post again, or until the bucket is full.
  const seconds = isUsedUp
    ? Number(headers?.['retry-after'])
    : (burstQuotes - left) / quotesPerSecond
  const window = Math.max(1, Math.round(burstQuotes / quotesPerSecond))
  return {
    'ratelimit-policy': `"${QUOTA_POLICY}";q=${burstQuotes};w=${window};sluice-unit="quotes"`,
    ratelimit: `"${QUOTA_POLICY}";r=${left};t=${Math.ceil(seconds)}`,
  }
}

/**
 * Resolves when the response has room for more, or its reader has disconnected.
 *
 * @param signal ends the wait: it rejects.
 */
export async function roomFor(
  response: ServerResponse,
  signal = new AbortController().signal,
): Promise<void> {
  if (response.destroyed || !response.writableNeedDrain) return
  const ended = new AbortController()
  const either = { signal: AbortSignal.any([ended.signal, signal]) }
  await Promise.race([once(response, 'drain', either), once(response, 'close', either)]).finally(
    () => ended.abort(),
  )
}
