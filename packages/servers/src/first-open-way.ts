import type { Engine, Way } from './engine.ts'
import { DataInUse } from './leftover.ts'

/** None of the ways to get a server is open on this machine; the message says why for each. */
export class NoServerFound extends Error {
  override readonly name = 'NoServerFound'
}

/** Tries the ways one after the other, with `use` for the engine that a way found, and gives what the first that worked gave. Throws NoServerFound, UnusableData, DataInUse. */
export async function firstOpenWay<T>(
  server: string,
  ways: readonly Way[],
  use: (engine: Engine) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const closed: string[] = []
  for (const way of ways) {
    try {
      const found = await way.find()
      if (!('missing' in found)) return await use(found)
      closed.push(`${way.name}: ${found.missing}`)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof UnusableData || error instanceof DataInUse) throw error
      closed.push(`${way.name}: ${error instanceof Error ? error.message : error}`)
    }
  }
  throw new NoServerFound(
    `No ${server} on this machine, and no way to get one:\n${closed.map((line) => `- ${line}`).join('\n')}`,
  )
}

/** An engine does not start on data that it wrote before: another engine with no data would hide that, so no other is tried. */
export class UnusableData extends Error {
  override readonly name = 'UnusableData'
}
