/** Stores when keys were last used. */
import type { KeyAccess } from './key.ts'

/**
 * Writes the last use of each key every `everyMs`, all keys together, and empties `uses`. Uses that could not be
 * written join the next write, of at most `maxKeys` keys. Returns a function that ends the timer and writes the rest.
 */
export function writeUses(
  uses: Map<string, number>,
  {
    touchKeys,
    onError,
    maxKeys,
    everyMs = 60_000,
  }: Pick<KeyAccess, 'touchKeys'> & { onError: (error: unknown) => void; maxKeys: number; everyMs?: number },
): () => Promise<void> {
  let flushed = Promise.resolve()

  async function flush(): Promise<void> {
    if (uses.size === 0) return
    const written = Array.from(uses)
    uses.clear()
    try {
      await touchKeys(new Map(written.map(([id, at]) => [id, new Date(at)])))
    } catch (error) {
      onError(error)
      for (const [id, at] of written) if (uses.size < maxKeys && !uses.has(id)) uses.set(id, at)
    }
  }

  /** Flushes one after the other: a write that fails returns its uses before the next one begins. */
  function flushNext(): Promise<void> {
    flushed = flushed.then(flush)
    return flushed
  }

  const timer = setInterval(flushNext, everyMs).unref()
  return () => {
    clearInterval(timer)
    return flushNext()
  }
}
