import type { KeyAccess } from './key-access.ts'

/** Gathers when keys were used. */
export interface KeyUses {
  /** Notes a use at `at`, in milliseconds since the epoch; costs no more than a look into a map. */
  note(id: string, at: number): void
  /** Writes what is not written yet and stops the timer. */
  close(): Promise<void>
}

/**
 * Writes the last use of each key, all keys in one go, every `everyMs`. What can't be written is tried again with the
 * next; past `maxKeys` keys in between further ones go unnoted.
 */
export function createKeyUses({
  touchKeys,
  onError,
  everyMs = 60_000,
  maxKeys = 10_000,
}: Pick<KeyAccess, 'touchKeys'> & {
  onError: (error: unknown) => void
  everyMs?: number
  maxKeys?: number
}): KeyUses {
  let uses = new Map<string, number>()
  let flushed = Promise.resolve()

  function note(id: string, at: number): void {
    if (uses.size < maxKeys || uses.has(id)) uses.set(id, at)
  }

  async function flush(): Promise<void> {
    if (uses.size === 0) return
    const written = uses
    uses = new Map()
    try {
      await touchKeys(new Map(Array.from(written, ([id, at]) => [id, new Date(at)])))
    } catch (error) {
      onError(error)
      for (const [id, at] of written) if (!uses.has(id)) note(id, at)
    }
  }

  /** One after the other, so that a slow store never has two flushes to do. */
  function flushNext(): Promise<void> {
    flushed = flushed.then(flush)
    return flushed
  }

  const timer = setInterval(flushNext, everyMs).unref()
  return {
    note,
    close: () => {
      clearInterval(timer)
      return flushNext()
    },
  }
}
