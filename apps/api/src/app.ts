// Builds the API as an Express app: its middleware in order, and the routes of a table.
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import type { MiddlewareDeps } from './api-deps.ts'
import {
  authenticate,
  finish,
  handleRequest,
  type Locals,
  openContext,
  openRoute,
} from './request/middleware.ts'
import {
  asProblem,
  CallerGoneError,
  idempotencyKeyInvalid,
  ProblemError,
  problemBody,
} from './request/problem-error.ts'
import type { Answer, Handler, PathParams, RequestContext } from './request/request-context.ts'
import { enqueues, IDEMPOTENCY_KEY, type Route } from './routes/route.ts'

/** What the router needs of a route. The handler already has its dependencies. */
export type ServedRoute = Pick<Route, 'method' | 'path' | 'access' | 'parameters' | 'onlyReads'> & {
  handler: Handler
}

type ErrorMiddleware = ErrorRequestHandler<PathParams, unknown, unknown, unknown, Locals>

/** Builds the app. It does not listen yet. */
export function buildApp(deps: MiddlewareDeps, routes: readonly ServedRoute[]): Express {
  const app = express()
  function addRoutes(added: readonly ServedRoute[]): void {
    for (const [path, ofPath] of Map.groupBy(added, (route) => route.path)) {
      const at = app.route(expressPaths(path))
      for (const route of ofPath) {
        at[route.method](openRoute(deps, path, route.access))
        if (!route.parameters?.includes(IDEMPOTENCY_KEY)) at[route.method](refuseIdempotencyKey)
        at[route.method](handleRequest(deps, route.handler, enqueues(route)))
      }
      at.all(openRoute(deps, path, ofPath[0]?.access ?? 'open'), refuseMethod(ofPath))
    }
  }
  const isOpen = ({ access }: ServedRoute) => access === 'open'
  app.disable('x-powered-by').disable('etag')
  app.enable('case sensitive routing').enable('strict routing')
  app.use(openContext(deps))
  addRoutes(routes.filter(isOpen))
  app.use(authenticate(deps))
  addRoutes(routes.filter((route) => !isOpen(route)))
  app.use(() => {
    throw new ProblemError('route_unknown')
  })
  app.use(answerError(deps))
  return app
}

/**
 * Converts a path of OpenAPI for Express, in which a bare colon would begin a parameter. Some
 * clients encode each segment of a path, including the colon of `/sources:batch`.
 */
function expressPaths(path: string): string[] {
  const colons = path.includes(':') ? ['\\:', '%3A', '%3a'] : ['']
  return colons.map((colon) => path.replaceAll(':', colon).replaceAll(/\{(\w+)\}/g, ':$1'))
}

function refuseMethod(routes: readonly ServedRoute[]): () => never {
  const methods = routes.map(({ method }) => method.toUpperCase())
  const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].join(', ')
  return () => {
    throw new ProblemError(
      'method_not_allowed',
      { detail: `This path accepts ${allow}.` },
      { allow },
    )
  }
}

const refuseIdempotencyKey: RequestHandler = ({ headers }, _response, next) => {
  if (headers['idempotency-key'] !== undefined)
    throw idempotencyKeyInvalid('Idempotency-Key belongs to POST /sources and DELETE.')
  next()
}

/**
 * Answers a request whose middleware or handler threw. Express recognises an error handler by its
 * four parameters.
 */
function answerError(deps: MiddlewareDeps): ErrorMiddleware {
  return (error, _request, { locals: { context } }, _next) => {
    finish(deps, context, error instanceof CallerGoneError ? 'gone' : problemAnswer(error, context))
  }
}

/**
 * Maps an error to an answer. Logs the error itself if the API is at fault, otherwise only the
 * message of its cause.
 */
function problemAnswer(error: unknown, { path, requestId, log }: RequestContext): Answer {
  const known = asProblem(error)
  if (known === undefined) log.err = error
  else if (error instanceof Error && error.cause instanceof Error) log.reason = error.cause.message
  const problem = known ?? new ProblemError('internal')
  log.code = problem.code
  const body = problemBody(problem, path, requestId)
  return { status: body.status, body, headers: problem.headers }
}
