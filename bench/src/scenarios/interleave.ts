import { medianRound, type Round } from '../measure/round.ts'
import type { Measured } from './scenario.ts'

/**
 * Measures several contenders in turn, round by round, so that other load on the machine affects
 * all of them alike. The first round is discarded, and each round begins with another contender.
 */
export async function interleave<Name extends string>(
  names: readonly Name[],
  rounds: number,
  measure: (name: Name, round: number) => Promise<Round>,
): Promise<Measured[]> {
  const kept = new Map<Name, Round[]>(names.map((name) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const name of rotated(names, round)) {
      const measured = await measure(name, round)
      if (round > 0) kept.get(name)?.push(measured)
    }
  }
  return Array.from(kept, ([name, rounds]) => ({ name, rounds, median: medianRound(rounds) }))
}

/** The median round of one contender. Throws if it was not measured. */
export function medianOf(
  measured: readonly Pick<Measured, 'median' | 'name'>[],
  name: string,
): Measured['median'] {
  const found = measured.find((one) => one.name === name)
  if (found === undefined) throw new Error(`${name} was not measured`)
  return found.median
}

function rotated<T>(items: readonly T[], by: number): T[] {
  const at = by % items.length
  return [...items.slice(at), ...items.slice(0, at)]
}
