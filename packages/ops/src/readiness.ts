// Decides whether a process can do its work, by pings that are repeated: so the answer is recent, and asking for it never waits.

/** The state of one thing that a process needs. Anybody may see the reason, so it names no server. */
export type Check = { ok: true } | { ok: false; reason: string }

/** Whether a process can do its work now, and each thing that it needs for that. */
export interface Readiness {
  ready: boolean
  checks: Record<string, Check>
}

/** A server that hangs is noticed within `PING_EVERY_MS + PING_MS`. */
const PING_EVERY_MS = 1_000
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
 * Pings a server now and each second, one ping at a time.
 *
 * @param ping resolves if the server answers. One that takes too long has failed.
 */
export function repeatPing(ping: () => Promise<unknown>): { check: () => Check; close: () => void } {
  let check: Check = { ok: false, reason: 'not checked yet' }
  let isPinging = false

  async function pingOnce(): Promise<void> {
    if (isPinging) return
    isPinging = true
    check = await checkWithin(ping)
    isPinging = false
  }

  const timer = setInterval(pingOnce, PING_EVERY_MS)
  void pingOnce()
  return { check: () => check, close: () => clearInterval(timer) }
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
