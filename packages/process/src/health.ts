// Checks whether a process can work. Serves the result and the metrics to operators, on a separate
// port.
import { setTimeout as delay } from 'node:timers/promises'
import { listen } from './connection/listen.ts'
import type { Metrics } from './metrics.ts'

/**
 * The state of something that a process needs. The reason names no server, because anybody may see
 * it.
 */
export type Check = { ok: true } | { ok: false; reason: string }

export type Readiness = ReturnType<typeof readinessOf>

/** A ping serves all requests that come within this time after it began. */
const PING_EVERY_MS = 500
const PING_MS = 1_500

/** Makes the readiness of a process. It is ready if every check is ok. */
export function readinessOf(checks: Readonly<Record<string, Check>>) {
  return { ready: Object.values(checks).every(({ ok }) => ok), checks }
}

/** Makes a check from a condition. If the condition is false, the check has the reason. */
export function checkOf(ok: boolean, reason: string): Check {
  return ok ? { ok } : { ok, reason }
}

/**
 * Makes a function that calls `read` when it is needed. Callers share the result of a read that
 * began at most `ms` ago.
 */
export function shareFor<Result>(ms: number, read: () => Promise<Result>): () => Promise<Result> {
  let last: { result: Promise<Result>; at: number } | undefined
  return () => {
    const now = performance.now()
    if (last === undefined || now - last.at >= ms) last = { result: read(), at: now }
    return last.result
  }
}

/**
 * Appends why a server failed, such as ` (CERT_HAS_EXPIRED)`, to a reason, if the error or one of
 * its causes has a code, or begins with one, as Redis's errors do (`NOAUTH …`). A code, unlike a
 * message, names no server.
 */
export function reasonWithCode(reason: string, error: unknown): string {
  const { message = '', code = /^[A-Z]+(?= )/.exec(message)?.[0], cause } = Object(error)
  if (typeof code === 'string') return `${reason} (${code})`
  return cause === undefined ? reason : reasonWithCode(reason, cause)
}

/** Makes a check of a server by a ping, which must resolve within `PING_MS`. */
export function pingWhenAsked(ping: () => Promise<unknown>): () => Promise<Check> {
  const late = checkOf(false, `no answer within ${PING_MS} ms`)
  return shareFor(PING_EVERY_MS, () => {
    const answered = ping().then((): Check => ({ ok: true }))
    const limit = delay(PING_MS, late, { ref: false })
    return Promise.race([answered, limit]).catch((error) =>
      checkOf(false, reasonWithCode('not reached', error)),
    )
  })
}

interface AdminDeps {
  adminPort: number
  adminHost: string
  metrics: Metrics
  /** Returns why the process must be restarted. Returns undefined if it need not be. */
  findFault?: () => string | undefined
  readiness: () => Promise<Readiness>
}

/**
 * Serves `/livez`, `/readyz` and `/metrics`. `close` cuts all connections. Rejects if it can't
 * listen.
 */
export async function startAdminServer(deps: AdminDeps) {
  const { port, end } = await listen(
    async ({ method = '', url = '' }, response) => {
      const answer = await answerOf(deps, method, url.replace(/\?.*/s, ''))
      response.statusCode = answer.status
      response.setHeaders(answer.headers).setHeader('cache-control', 'no-store')
      // Node.js sends no body to a HEAD.
      response.end(await answer.text())
    },
    { port: deps.adminPort, host: deps.adminHost },
  )
  return { port, close: end }
}

const PATHS = ['/livez', '/readyz', '/metrics']

async function answerOf(
  { metrics, findFault, readiness }: AdminDeps,
  method: string,
  path: string,
): Promise<Response> {
  if (!PATHS.includes(path)) return Response.json({ error: 'not found' }, { status: 404 })
  if (method !== 'GET' && method !== 'HEAD')
    return Response.json(
      { error: 'method not allowed' },
      { status: 405, headers: { allow: 'GET, HEAD' } },
    )
  try {
    if (path === '/metrics')
      return new Response(await metrics.text(), {
        headers: { 'content-type': metrics.contentType },
      })
    if (path === '/readyz') {
      const state = await readiness()
      return Response.json(state, { status: state.ready ? 200 : 503 })
    }
    const reason = findFault?.()
    return Response.json(
      { alive: reason === undefined, reason },
      { status: reason === undefined ? 200 : 503 },
    )
  } catch {
    // The error may name a server's address, so do not send it.
    return Response.json({ error: 'failed' }, { status: 500 })
  }
}
