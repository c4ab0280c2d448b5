// Decides whether a process can do its work, and serves that and its metrics to its operators, on a port of its own.

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import express, { type Express, type Request, type Response } from 'express'
import type { Metrics } from './metrics.ts'

/** The state of one thing that a process needs. Anybody may see the reason, so it names no server. */
export type Check = { ok: true } | { ok: false; reason: string }

/** Whether a process can do its work now, and each thing that it needs for that. */
export interface Readiness {
  ready: boolean
  checks: Record<string, Check>
}

/** The age up to which the result of a ping answers further requests. */
const PING_EVERY_MS = 500
const PING_MS = 1_500

/** A process is ready if every check is. */
export function readinessOf(checks: Readonly<Record<string, Check>>): Readiness {
  return { ready: Object.values(checks).every(({ ok }) => ok), checks }
}

/** Describes the state by the connection alone, without a ping. */
export function checkOf(ok: boolean, reason: string): Check {
  return ok ? { ok } : { ok, reason }
}

/**
 * Makes a function that pings a server and returns the result. Callers at the same time share one ping, and its result
 * answers later callers for a moment.
 *
 * @param ping resolves if the server answers. A ping beyond its time limit has failed.
 */
export function pingWhenAsked(ping: () => Promise<unknown>): () => Promise<Check> {
  let last: { check: Promise<Check>; at: number } | undefined
  return async () => {
    const now = performance.now()
    if (last === undefined || now - last.at >= PING_EVERY_MS) last = { check: checkWithin(ping), at: now }
    return last.check
  }
}

async function checkWithin(ping: () => Promise<unknown>): Promise<Check> {
  const late = Promise.withResolvers<Check>()
  const timer = setTimeout(late.resolve, PING_MS, { ok: false, reason: `no answer within ${PING_MS} ms` })
  try {
    return await Promise.race([ping().then((): Check => ({ ok: true })), late.promise])
  } catch {
    return { ok: false, reason: 'not reached' }
  } finally {
    clearTimeout(timer)
  }
}

/** The dependencies of the admin server. */
interface AdminDeps {
  metrics: Metrics
  /** Returns why the process must be restarted, if it must. */
  findFault?: () => string | undefined
  readiness: () => Promise<Readiness>
}

/**
 * Serves `/livez`, `/readyz` and `/metrics`. `port` 0 means any free port; the returned `port` is the one in use.
 * Rejects if it cannot listen.
 */
export async function startAdminServer({
  port,
  host,
  ...deps
}: AdminDeps & { port: number; host: string }): Promise<{ port: number; close: () => Promise<void> }> {
  const server = createServer(buildAdminApp(deps))
  server.listen(port, host)
  await once(server, 'listening')
  const address = server.address()
  const listening = address !== null && typeof address === 'object' ? address.port : port
  return { port: listening, close: () => close(server) }
}

function buildAdminApp({ metrics, findFault, readiness }: AdminDeps): Express {
  const app = express()
  app.disable('x-powered-by').disable('etag').enable('strict routing').enable('case sensitive routing')
  app.use((_request, response, next) => void (response.set('cache-control', 'no-store') && next()))
  app
    .route('/livez')
    .get((_request, response) => {
      const reason = findFault?.()
      response.status(reason === undefined ? 200 : 503).json({ alive: reason === undefined, reason })
    })
    .all(refuseMethod)
  app
    .route('/readyz')
    .get(async (_request, response) => {
      const state = await readiness()
      response.status(state.ready ? 200 : 503).json(state)
    })
    .all(refuseMethod)
  app
    .route('/metrics')
    .get(async (_request, response) => void response.type(metrics.contentType).send(await metrics.text()))
    .all(refuseMethod)
  app.use((_request, response) => void response.status(404).json({ error: 'not found' }))
  // Express recognises an error handler by its four parameters. The error may name a server's address, so it is not
  // sent.
  app.use((_error: unknown, _request: Request, response: Response, _next: () => void) => {
    response.status(500).json({ error: 'failed' })
  })
  return app
}

function refuseMethod(_request: Request, response: Response): void {
  response.status(405).set('allow', 'GET, HEAD').json({ error: 'method not allowed' })
}

/** Resolves once nothing is open, at once for a server that is closed already. */
function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
