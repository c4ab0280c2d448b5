import { setTimeout as pause } from 'node:timers/promises'
import { afterAll } from 'vitest'

// Fails a test file that leaves a process, a server or a connection open. Vitest ends test
// processes by force, so nothing else would notice.

const GONE_WITHIN_MS = 5_000
const kinds = new Set(['ProcessWrap', 'TCPServerWrap', 'TCPSocketWrap'])

const before = left().length

afterAll(async () => {
  const end = performance.now() + GONE_WITHIN_MS
  while (left().length > before && performance.now() < end) await pause(10)
  if (left().length > before)
    throw new Error(`The tests of this file left behind: ${left().join(', ')}`)
})

/** What keeps this process running, of the kinds that a test has to end. */
function left(): string[] {
  return process.getActiveResourcesInfo().filter((kind) => kinds.has(kind))
}
