import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import type { Handle } from './call.ts'
import { ProblemError } from './problem-error.ts'
import type { Route } from './routes.ts'
import { type Edge, serve } from './serve.ts'

/** Builds the HTTP edge from its route table; it listens nowhere yet. */
export function buildApi(edge: Edge, table: readonly Route[]): Express {
  const app = express()
  app.disable('x-powered-by').disable('etag')
  app.enable('case sensitive routing').enable('strict routing')
  const run = (open: boolean, handle: Handle) => (request: Request, response: Response) =>
    serve(edge, { open, handle }, { request, response, params: request.params })
  for (const path of new Set(table.map((route) => route.path))) {
    const ofPath = table.filter((route) => route.path === path)
    const at = app.route(path)
    for (const { method, open, handle } of ofPath) at[method](run(open, handle))
    at.all(
      run(
        ofPath.every(({ open }) => open),
        otherMethod(ofPath),
      ),
    )
  }
  app.use(run(false, unknownPath))
  // Express itself fails on a path that is not decodable, and on nothing else.
  app.use((_error: unknown, request: Request, response: Response, _next: NextFunction) =>
    run(false, unknownPath)(request, response),
  )
  return app
}

function otherMethod(routes: readonly Route[]): Handle {
  const methods = routes.map(({ method }) => method.toUpperCase())
  const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].join(', ')
  return async () => {
    throw new ProblemError('method_not_allowed', { detail: `This path takes ${allow}.` }, { allow })
  }
}

async function unknownPath(): Promise<never> {
  throw new ProblemError('route_unknown', { detail: 'There is nothing at this path.' })
}
