// Builds the API as an Express app: its middleware in order, and the routes of a table.
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import type { ApiDeps } from './api-deps.ts'
import {
  apiKeyInvalid,
  CallerGoneError,
  keysUnavailable,
  methodNotAllowed,
  problemAnswer,
  queueUnavailable,
  routeUnknown,
} from './problems.ts'
import {
  type Answer,
  type Handler,
  openContext,
  type PathParams,
  type RequestContext,
  STREAMED,
  sendAnswer,
} from './request-context.ts'

/** One route of the API. */
export interface Route {
  method: 'get' | 'post'
  path: string
  /** Open routes need no key. Routes of one path have the same access. */
  access: 'open' | 'key'
  handler: Handler
}

type AppDeps = Pick<ApiDeps, 'keyring' | 'metrics' | 'log' | 'redis' | 'stopping'>

type Locals = { context: RequestContext }
type Middleware = RequestHandler<PathParams, unknown, unknown, unknown, Locals>
type ErrorMiddleware = ErrorRequestHandler<PathParams, unknown, unknown, unknown, Locals>

/** Builds the app. It listens nowhere yet. */
export function buildApp(deps: AppDeps, routes: readonly Route[]): Express {
  const app = express()
  app.disable('x-powered-by').disable('etag')
  app.enable('case sensitive routing').enable('strict routing')
  app.use(attachContext)
  addRoutes(app, deps, routes, 'open')
  app.use(authenticate(deps.keyring))
  addRoutes(app, deps, routes, 'key')
  app.use(refusePath)
  app.use(answerError(deps))
  return app
}

function addRoutes(app: Express, deps: AppDeps, routes: readonly Route[], access: Route['access']): void {
  const added = routes.filter((route) => route.access === access)
  for (const path of new Set(added.map((route) => route.path))) {
    const ofPath = added.filter((route) => route.path === path)
    const at = app.route(path)
    for (const { method, handler } of ofPath) {
      if (method === 'post') at.post(admit(deps.redis))
      at[method](answer(deps, handler))
    }
    at.all(refuseMethod(ofPath))
  }
}

const attachContext: Middleware = (request, response, next) => {
  response.locals.context = openContext(request, response)
  next()
}

/** Checks the key before a byte of the body is read. */
function authenticate(keyring: AppDeps['keyring']): Middleware {
  return async (request, response, next) => {
    const header = request.headers['x-api-key']
    const verdict = await keyring.find(typeof header === 'string' ? header : undefined)
    if (verdict.outcome === 'unavailable') throw keysUnavailable()
    if (verdict.outcome === 'unknown') throw apiKeyInvalid(header)
    response.locals.context.tenant = verdict.tenant
    next()
  }
}

/** Refuses a POST before its body is read if nothing can be enqueued. */
function admit(redis: AppDeps['redis']): Middleware {
  return (_request, _response, next) => {
    if (redis.status !== 'ready') throw queueUnavailable()
    next()
  }
}

function answer(deps: AppDeps, handler: Handler): Middleware {
  return async (request, { locals: { context } }) => {
    finish(deps, context, await handler(context, request.params))
  }
}

function refuseMethod(routes: readonly Route[]): Middleware {
  const methods = routes.map(({ method }) => method.toUpperCase())
  const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].join(', ')
  return () => {
    throw methodNotAllowed(allow)
  }
}

const refusePath: Middleware = () => {
  throw routeUnknown()
}

/** Answers a request whose middleware or handler threw. Express recognises an error handler by its four parameters. */
function answerError(deps: AppDeps): ErrorMiddleware {
  return (error, _request, { locals: { context } }, _next) => {
    finish(deps, context, error instanceof CallerGoneError ? 'gone' : problemAnswer(error, context))
  }
}

/** Sends the answer of a request, counts it, and writes its one log line. */
function finish(
  { metrics, log, stopping }: AppDeps,
  context: RequestContext,
  result: Answer | typeof STREAMED | 'gone',
): void {
  const status = send(context, result, stopping.aborted)
  const durationMs = Math.round((performance.now() - context.startedAt) * 10) / 10
  metrics.requests.inc({ status: String(status) })
  metrics.requestTime.observe(durationMs / 1000)
  const { requestId, path, tenant, request } = context
  const fields = { requestId, method: request.method, path, status, tenant, ...context.log, durationMs }
  log[Number(status) >= 500 ? 'warn' : 'info'](fields, 'request.answered')
}

function send(context: RequestContext, result: Answer | typeof STREAMED | 'gone', closing: boolean): number | 'gone' {
  const { response } = context
  if (result === STREAMED) return response.statusCode
  if (result !== 'gone' && !response.closed && !response.headersSent) {
    sendAnswer(context, result, closing)
    return result.status
  }
  // An answer that has begun can't be taken back. Breaking it off tells its reader that it is incomplete.
  response.destroy()
  return 'gone'
}
