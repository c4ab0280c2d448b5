import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Metrics } from './create-metrics.ts'

/** Whether a process can do its work now, and which of the parts that it needs can be reached. */
export interface Readiness {
  ready: boolean
  checks: Record<string, boolean>
}

interface Answer {
  status: number
  type: string
  body: string
}

type Pages = ReadonlyMap<string, () => Promise<Answer>>

// Shorter than any orchestrator's usual patience, so that a check that hangs is told apart from a dead process.
const READINESS_MS = 2_000

/**
 * Serves `/livez`, `/readyz` and `/metrics` to whoever operates the process. `port` 0 takes any free one; the answer
 * says which. Rejects where it can't listen. A readiness check that fails or takes over two seconds means not ready.
 */
export async function startAdminServer({
  port,
  host,
  metrics,
  isReady,
}: {
  port: number
  host: string
  metrics: Pick<Metrics, 'text' | 'contentType'>
  isReady: () => Promise<Readiness>
}): Promise<{ port: number; close: () => Promise<void> }> {
  const pages: Pages = new Map([
    ['/livez', async () => json(200, { alive: true })],
    ['/readyz', async () => readiness(isReady)],
    ['/metrics', async () => ({ status: 200, type: metrics.contentType, body: await metrics.text() })],
  ])
  const server = createServer((request, response) => void answer(pages, request, response))
  server.listen(port, host)
  await once(server, 'listening')
  return { port: portOf(server.address(), port), close: () => closed(server) }
}

function portOf(address: ReturnType<Server['address']>, asked: number): number {
  return address !== null && typeof address === 'object' ? address.port : asked
}

/** Resolves once nothing is open, at once for a server that is closed already. */
function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

async function answer(pages: Pages, request: IncomingMessage, response: ServerResponse) {
  const { status, type, body } = await page(pages, request)
  response.writeHead(status, {
    'content-type': type,
    'cache-control': 'no-store',
    ...(status === 405 && { allow: 'GET, HEAD' }),
  })
  response.end(body)
}

async function page(pages: Pages, { url = '', method }: IncomingMessage): Promise<Answer> {
  const path = url.split('?', 1)[0] ?? ''
  const found = pages.get(path)
  if (found === undefined) return json(404, { error: 'not found' })
  if (method !== 'GET' && method !== 'HEAD') return json(405, { error: 'method not allowed' })
  return found().catch(() => json(500, { error: 'failed' }))
}

async function readiness(isReady: () => Promise<Readiness>): Promise<Answer> {
  const state = await inTime(isReady).catch((): Readiness => ({ ready: false, checks: {} }))
  return json(state.ready ? 200 : 503, state)
}

async function inTime<T>(ask: () => Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('too late')), READINESS_MS)
  try {
    return await Promise.race([ask(), late.promise])
  } finally {
    clearTimeout(timer)
  }
}

function json(status: number, body: unknown): Answer {
  return { status, type: 'application/json', body: `${JSON.stringify(body)}\n` }
}
