// Checks that an attack left the processes of a Sluice alive, and that none of them logged a fault
// of its own.
import assert from 'node:assert/strict'
import type { TestSluice } from '../../support/start-sluice.ts'

const FAULTS = new Set(['error', 'fatal'])

/**
 * Fails if a process ended, logged an error, failed a job or answered a 5xx other than 501, which
 * refuses a coding.
 */
export async function assertUnharmed({ api, workers }: TestSluice): Promise<void> {
  for (const { child, log } of [api, ...workers]) {
    assert.equal(child.exitCode, null)
    const faults = log.filter(
      ({ level, msg }) => FAULTS.has(String(level)) || msg === 'job.try_failed',
    )
    assert.deepEqual(faults, [])
  }
  assert.deepEqual(serverFaultsIn(await metricsOf(api)), [])
}

/** The metrics of a process, as Prometheus reads them. */
export async function metricsOf({ line }: TestSluice['api']): Promise<string> {
  const { adminPort } = await line(
    ({ msg }) => msg === 'api.listening' || msg === 'worker.listening',
  )
  return (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
}

function serverFaultsIn(metrics: string): string[] {
  return metrics.split('\n').filter((line) => /^sluice_requests_total\{.*status="50[^1]/.test(line))
}
