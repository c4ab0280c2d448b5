// Decides whether a process can do its work, by pings of the servers that it needs.

/** The state of one thing that a process needs. Anybody may see the reason, so it names no server. */
export type Check = { ok: true } | { ok: false; reason: string }

/** Whether a process can do its work now, and each thing that it needs for that. */
export interface Readiness {
  ready: boolean
  checks: Record<string, Check>
}

/** A ping is asked for at most so often, however often anybody asks for the readiness. */
const PING_EVERY_MS = 500
const PING_MS = 1_500

/** A process is ready if every check is. */
export function readinessOf(checks: Readonly<Record<string, Check>>): Readiness {
  return { ready: Object.values(checks).every(({ ok }) => ok), checks }
}

/** Describes what is known without a ping. */
export function checkOf(ok: boolean, reason: string): Check {
  return ok ? { ok } : { ok, reason }
}

/**
 * Makes a function that pings a server and tells how that went. Those who ask at the same time share one ping, and its answer serves for a moment.
 *
 * @param ping resolves if the server answers. One that takes too long has failed.
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
