// Asks a process's admin port.
import type { StartedProcess } from '@sluice/test-support'

/**
 * The HTTP status of a path on the admin port. Resolves with undefined if nothing answers there in
 * time.
 */
export async function adminStatus(
  process: StartedProcess,
  path: '/livez' | '/readyz',
  withinMs = 5_000,
): Promise<number | undefined> {
  const { adminPort } = await process.line((line) => typeof line.adminPort === 'number')
  const url = `http://127.0.0.1:${adminPort}${path}`
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(withinMs) })).status
  } catch {
    return undefined
  }
}
