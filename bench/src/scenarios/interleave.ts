import { medianRound, type Round } from '../measure/round.ts'
import type { Measured } from './scenario.ts'

/**
 * Measures several in turn, round by round, so that whatever else the machine does meets all of them. The first round is discarded, and each
 * round begins with another one.
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

/** The median round of one of those that were measured. Throws where it was not. */
export function medianOf(measured: readonly Measured[], name: string): Measured['median'] {
  const found = measured.find((one) => one.name === name)
  if (found === undefined) throw new Error(`${name} was not measured`)
  return found.median
}

function rotated<T>(items: readonly T[], by: number): T[] {
  const at = by % items.length
  return [...items.slice(at), ...items.slice(0, at)]
}
