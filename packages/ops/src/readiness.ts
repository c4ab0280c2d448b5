// Decides whether a process can do its work, by probes that are repeated: so the answer is recent, and asking for it never waits.

/** The state of one thing that a process needs. Anybody may see the reason, so it names no server. */
export type Check = { ok: true } | { ok: false; reason: string }

/** Whether a process can do its work now, and each thing that it needs for that. */
export interface Readiness {
  ready: boolean
  checks: Record<string, Check>
}

/** A server that hangs is noticed within `PROBE_EVERY_MS + PROBE_MS`. */
const PROBE_EVERY_MS = 1_000
const PROBE_MS = 1_500

/** A process is ready if every check is. */
export function readinessOf(checks: Readonly<Record<string, Check>>): Readiness {
  return { ready: Object.values(checks).every(({ ok }) => ok), checks }
}

/** Describes what is known without a probe. */
export function checkOf(ok: boolean, reason: string): Check {
  return ok ? { ok } : { ok, reason }
}

/**
 * Probes a server now and each second, one probe at a time.
 *
 * @param probe resolves if the server answers. One that takes too long has failed.
 */
export function repeatProbe(probe: () => Promise<unknown>): { check: () => Check; close: () => void } {
  let check: Check = { ok: false, reason: 'not checked yet' }
  let isProbing = false

  async function probeOnce(): Promise<void> {
    if (isProbing) return
    isProbing = true
    check = await checkWithin(probe)
    isProbing = false
  }

  const timer = setInterval(probeOnce, PROBE_EVERY_MS)
  void probeOnce()
  return { check: () => check, close: () => clearInterval(timer) }
}

async function checkWithin(probe: () => Promise<unknown>): Promise<Check> {
  const late = Promise.withResolvers<Check>()
  const timer = setTimeout(late.resolve, PROBE_MS, { ok: false, reason: `no answer within ${PROBE_MS} ms` })
  try {
    return await Promise.race([probe().then((): Check => ({ ok: true })), late.promise])
  } catch {
    return { ok: false, reason: 'not reached' }
  } finally {
    clearTimeout(timer)
  }
}
