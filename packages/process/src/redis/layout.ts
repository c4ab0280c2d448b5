// Stops a process that can't read what other releases have written to Redis (docs/adr/0018-layouts-of-redis.md).
import type { Redis } from 'ioredis'
import { openScript } from './script.ts'

/**
 * The layout of a queue's keys and values, as a number. It rises when an older release could not read what this one
 * writes. `test/e2e/redis-layout.test.ts` fails if the layout changes without the number.
 */
export const LAYOUT = {
  /** What this release writes. */
  writes: 1,
  /** The highest layout that this release reads. A release before a change already reads the next one: `writes` + 1. */
  reads: 1,
}

/** A newer release has written what this one can't read. */
export class NewerLayoutError extends Error {
  override name = 'NewerLayoutError'

  constructor(found: number, reads: number) {
    super(
      `A newer release of Sluice has written layout ${found} to this queue, and this release reads only up to ${reads}. ` +
        'Start the newer release, or set QUEUE to another name (docs/operating.md#upgrades).',
    )
  }
}

const CHECK_EVERY_MS = 5_000

/**
 * Records the layout that this process writes, and checks that it can read what others wrote: now, each time that the
 * connection is ready again, and every five seconds. Does not wait for a Redis that is away.
 *
 * @param base the beginning of the queue's own keys.
 * @param onNewer is called when a later check fails: the process must stop.
 * @throws {NewerLayoutError} if the first check fails.
 */
export async function watchLayout(
  redis: Redis,
  base: string,
  onNewer: (error: NewerLayoutError) => void,
  { writes, reads } = LAYOUT,
): Promise<void> {
  const note = openScript(redis, new URL('./layout.lua', import.meta.url))

  async function findNewer(): Promise<NewerLayoutError | undefined> {
    if (redis.status !== 'ready') return undefined
    // If Redis goes away during the check, the next one comes when it is back.
    const found = Number(await note(base, writes).catch(() => 0))
    return found > reads ? new NewerLayoutError(found, reads) : undefined
  }
  async function checkAgain(): Promise<void> {
    const newer = await findNewer()
    if (newer !== undefined) onNewer(newer)
  }

  const newer = await findNewer()
  if (newer !== undefined) throw newer
  redis.on('ready', checkAgain)
  const timer = setInterval(checkAgain, CHECK_EVERY_MS).unref()
  redis.once('end', () => clearInterval(timer))
}
