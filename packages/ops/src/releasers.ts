import type { Logger } from 'pino'

/** Gives back one thing that was acquired; called once. */
export type Release = () => Promise<void> | void

/** What a process holds, in the order in which it was acquired. */
export interface Releasers {
  /** Notes how to give back what was just acquired; `name` is for the log. */
  add(name: string, release: Release): void
  /** Gives all back, the newest first, also when one of them fails. True where none did. */
  releaseAll(): Promise<boolean>
}

/** An empty stack of things to give back. */
export function createReleasers(log: Logger): Releasers {
  const held: { name: string; release: Release }[] = []
  return {
    add: (name, release) => void held.push({ name, release }),
    releaseAll: async () => {
      let clean = true
      for (let last = held.pop(); last !== undefined; last = held.pop()) {
        clean = (await released(last, log)) && clean
      }
      return clean
    },
  }
}

async function released({ name, release }: { name: string; release: Release }, log: Logger): Promise<boolean> {
  try {
    await release()
    return true
  } catch (err) {
    log.error({ err, part: name }, 'part.release_failed')
    return false
  }
}
