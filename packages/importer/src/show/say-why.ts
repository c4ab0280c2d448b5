// Says why an import makes no progress when its requests wait for an answer of the service.
import type { Client } from '@sluice/client'

interface Stalling {
  client: Pick<Client, 'getImport'>
  importId: string
  /** Returns how many threads are stored or rejected. */
  settled: () => number
  say: (line: string) => void
}

const EVERY_MS = 5_000
const ACCEPTED = 'the service has accepted threads, and has not stored them yet'

/** Asks the service why no thread has been settled for `EVERY_MS`. */
export function sayWhyItWaits({ client, importId, settled, say }: Stalling): Disposable {
  let before = settled()
  let said = ''
  async function look(): Promise<void> {
    const isStalled = settled() === before
    before = settled()
    const found = isStalled
      ? await client.getImport(importId, { signal: AbortSignal.timeout(EVERY_MS) })
      : undefined
    const why = found?.state === 'active' ? (found.waitsFor ?? ACCEPTED) : ''
    if (why !== '' && why !== said) say(`Waiting: ${why}.`)
    said = why
  }
  // If the service can't be reached, the posts of threads already say so.
  const timer = setInterval(() => void look().catch(() => {}), EVERY_MS)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
