// Decides whether a process can do its work, and serves that and its metrics to its operators, on a port of its own.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
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

/** Makes a function that reads when it is asked. Callers share the result of a read that began at most `ms` ago. */
export function shareFor<Result>(ms: number, read: () => Promise<Result>): () => Promise<Result> {
  let last: { result: Promise<Result>; at: number } | undefined
  return () => {
    const now = performance.now()
    if (last === undefined || now - last.at >= ms) last = { result: read(), at: now }
    return last.result
  }
}

/**
 * Makes a function that pings a server and returns the result.
 *
 * @param ping resolves if the server answers. A ping beyond its time limit has failed.
 */
export function pingWhenAsked(ping: () => Promise<unknown>): () => Promise<Check> {
  const late = checkOf(false, `no answer within ${PING_MS} ms`)
  return shareFor(PING_EVERY_MS, () => {
    const answered = ping().then((): Check => ({ ok: true }))
    const limit = delay(PING_MS, late, { ref: false })
    return Promise.race([answered, limit]).catch(() => checkOf(false, 'not reached'))
  })
}

/** The dependencies of the admin server. */
interface AdminDeps {
  metrics: Metrics
  /** Returns why the process must be restarted, if it must. */
  findFault?: () => string | undefined
  readiness: () => Promise<Readiness>
}

/** Serves `/livez`, `/readyz` and `/metrics`. Rejects if it cannot listen. */
export async function startAdminServer({ port, host, ...deps }: AdminDeps & { port: number; host: string }) {
  const server = createServer(async ({ method = '', url = '' }, response) => {
    const { status, type = JSON_TYPE, text } = await answerOf(deps, method, url.replace(/\?.*/s, ''))
    if (status === 405) response.setHeader('allow', 'GET, HEAD')
    const length = { 'content-length': Buffer.byteLength(text) }
    // Node.js sends no body to a HEAD.
    response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store', ...length }).end(text)
  })
  return listen(server, port, host)
}

/**
 * Listens; port 0 means any free one, and the returned `port` is the one in use. `close` cuts all connections and
 * resolves once nothing is open, at once if the server is closed already. Rejects if it cannot listen.
 */
export async function listen(server: Server, port: number, host: string) {
  server.listen(port, host)
  await once(server, 'listening')
  const address = server.address()
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return { address, port: typeof address === 'object' && address !== null ? address.port : port, close }
}

const PATHS = ['/livez', '/readyz', '/metrics']
const JSON_TYPE = 'application/json; charset=utf-8'

interface Answer {
  status: number
  text: string
  /** JSON by default. */
  type?: string
}

const asJson = (status: number, value: unknown): Answer => ({ status, text: JSON.stringify(value) })

async function answerOf({ metrics, findFault, readiness }: AdminDeps, method: string, path: string): Promise<Answer> {
  if (!PATHS.includes(path)) return asJson(404, { error: 'not found' })
  if (method !== 'GET' && method !== 'HEAD') return asJson(405, { error: 'method not allowed' })
  try {
    if (path === '/metrics') return { status: 200, type: metrics.contentType, text: await metrics.text() }
    if (path === '/readyz') {
      const state = await readiness()
      return asJson(state.ready ? 200 : 503, state)
    }
    const reason = findFault?.()
    return asJson(reason === undefined ? 200 : 503, { alive: reason === undefined, reason })
  } catch {
    // The error may name a server's address, so it is not sent.
    return asJson(500, { error: 'failed' })
  }
}
