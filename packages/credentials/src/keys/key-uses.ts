/** Stores when keys were last used. */
import type { KeyAccess } from './key.ts'

const EVERY_MS = 60_000

/**
 * Writes the last use of each key every minute, all keys together, and removes what it has written from `uses`. A use
 * that could not be written, or that is newer than the write, stays for the next one. Returns a function that ends the
 * timer and writes the rest.
 */
export function writeUses(
  uses: Map<string, number>,
  { touchKeys, onError }: Pick<KeyAccess, 'touchKeys'> & { onError: (error: unknown) => void },
): () => Promise<void> {
  async function flush(): Promise<void> {
    const written = Array.from(uses)
    if (written.length === 0) return
    try {
      await touchKeys(new Map(written.map(([id, at]) => [id, new Date(at)])))
      for (const [id, at] of written) if (uses.get(id) === at) uses.delete(id)
    } catch (error) {
      onError(error)
    }
  }

  const timer = setInterval(flush, EVERY_MS).unref()
  return () => {
    clearInterval(timer)
    return flush()
  }
}
