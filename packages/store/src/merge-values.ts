import type { Stamps } from './documents.ts'

/** What came of merging one request's values into stored ones. */
export interface MergedValues<Values> {
  values: Partial<Values>
  stamps: Stamps
  /** A value is another one than before, or was not there before. */
  changed: boolean
  /** Some field now counts as said later than before; where nothing changed, only the stamps need writing. */
  advanced: boolean
}

/**
 * Each field is a register of its own in which the request that was accepted last wins, so merging is commutative, associative
 * and idempotent: whatever order and however often requests are merged, the end is the same (a last-writer-wins map, Shapiro
 * et al. 2011, "A comprehensive study of CRDTs"). A field that is not given is kept. Stamps are unique to a request.
 */
export function mergeValues<Values extends object>(
  stored: Partial<Values>,
  stampOf: (name: keyof Values & string) => number,
  given: Partial<Values>,
  stamp: number,
): MergedValues<Values> {
  const values = { ...stored }
  const said: Record<string, number> = {}
  for (const name in stored) said[name] = stampOf(name)
  let changed = false
  let advanced = false
  for (const name in given) {
    if (stamp <= (said[name] ?? Number.NEGATIVE_INFINITY)) continue
    said[name] = stamp
    advanced = true
    if (sameValue(values[name], given[name])) continue
    values[name] = given[name]
    changed = true
  }
  return { values, stamps: foldStamps(said), changed, advanced }
}

/** One stamp for the newest fields, and one for each field that is older. */
function foldStamps(said: Record<string, number>): Stamps {
  let stamp = 0
  for (const name in said) stamp = Math.max(stamp, said[name] ?? 0)
  const older = Object.entries(said).filter(([, at]) => at < stamp)
  return older.length === 0 ? { stamp } : { stamp, stamps: Object.fromEntries(older) }
}

function sameValue(one: unknown, other: unknown): boolean {
  if (one instanceof Date && other instanceof Date) return one.getTime() === other.getTime()
  return one === other
}
