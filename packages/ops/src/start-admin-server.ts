// Serves a process's health and metrics to its operators, on a port of its own.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import express, { type Express, type Request, type Response } from 'express'
import type { Metrics } from './create-metrics.ts'

/** Whether a process can do its work now, and which of the servers that it needs it can reach. */
export interface Readiness {
  ready: boolean
  checks: Record<string, boolean>
}

// Shorter than any orchestrator's usual time limit, so that a hanging check differs from a dead process.
const READINESS_MS = 2_000

/** The dependencies of the admin server. */
interface AdminDeps {
  metrics: Pick<Metrics, 'text' | 'contentType'>
  isReady: () => Promise<Readiness>
}

/**
 * Serves `/livez`, `/readyz` and `/metrics`. `port` 0 means any free port; the returned `port` is the one in use.
 * Rejects if it cannot listen. A readiness check that fails or takes over two seconds means not ready.
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

function buildAdminApp({ metrics, isReady }: AdminDeps): Express {
  const app = express()
  app.disable('x-powered-by').disable('etag').enable('strict routing').enable('case sensitive routing')
  app.use((_request, response, next) => void (response.set('cache-control', 'no-store') && next()))
  app
    .route('/livez')
    .get((_request, response) => void response.json({ alive: true }))
    .all(refuseMethod)
  app
    .route('/readyz')
    .get(async (_request, response) => {
      const state = await withinTime(isReady).catch((): Readiness => ({ ready: false, checks: {} }))
      response.status(state.ready ? 200 : 503).json(state)
    })
    .all(refuseMethod)
  app
    .route('/metrics')
    .get(async (_request, response) => void response.type(metrics.contentType).send(await metrics.text()))
    .all(refuseMethod)
  app.use((_request, response) => void response.status(404).json({ error: 'not found' }))
  // Express recognises an error handler by its four parameters. The error may name a server's address, so it is not sent.
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

async function withinTime<T>(check: () => Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('too late')), READINESS_MS)
  try {
    return await Promise.race([check(), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
