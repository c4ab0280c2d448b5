import type { Findings } from '@sluice/store'

/** What was found, in lines for people. `names` tells the first of the sources that were wrong. */
export function describeFindings(
  { checked, wrong, repaired, beingWritten }: Findings,
  names: readonly string[],
  repair: boolean,
): string[] {
  const unnamed = wrong.length - names.length
  return [
    `Checked ${sources(checked)}: word counts and numbers of quotes against the stored quotes, and writers that are gone.`,
    `Wrong: ${wrong.length}`,
    ...names.map((name) => `  ${name}`),
    ...(unnamed > 0 && names.length > 0 ? [`  and ${unnamed} more`] : []),
    ...(repair ? [`Repaired: ${repaired}`] : []),
    ...(beingWritten > 0 ? [`Being written right now, and left to finish: ${beingWritten}`] : []),
  ]
}

function sources(count: number): string {
  return count === 1 ? '1 source' : `${count} sources`
}
