import { OptionsError } from '../options.ts'
import { crowdingImport } from './crowding-import.ts'
import { endurance } from './endurance.ts'
import { fullQueue } from './full-queue.ts'
import { growingSource } from './growing-source.ts'
import { ndjsonImport } from './import.ts'
import { importCommand } from './import-command.ts'
import { longThread } from './long-thread.ts'
import { openLoop } from './open-loop.ts'
import { replicas, workers } from './process-counts.ts'
import { reposts } from './reposts.ts'
import type { Scenario } from './scenario.ts'
import { callers1, callers64, callers256 } from './side-by-side.ts'

/** All scenarios, in the order in which they run. */
export const scenarios: readonly Scenario[] = [
  callers64,
  callers256,
  callers1,
  reposts,
  ndjsonImport,
  importCommand,
  replicas,
  workers,
  openLoop,
  endurance,
  longThread,
  growingSource,
  fullQueue,
  crowdingImport,
]

/**
 * Those scenarios that have these names; without names all, or with `quick` the short ones. Throws
 * OptionsError for an unknown name.
 */
export function chooseScenarios(
  scenarios: readonly Scenario[],
  names: readonly string[],
  quick: boolean,
): readonly Scenario[] {
  const unknown = names.filter((name) => !scenarios.some((scenario) => scenario.name === name))
  if (unknown.length > 0) {
    throw new OptionsError(
      `Unknown scenario ${unknown.join(', ')}; the scenarios are ${scenarios.map(({ name }) => name).join(', ')}`,
    )
  }
  if (names.length > 0) return scenarios.filter(({ name }) => names.includes(name))
  return scenarios.filter(({ long }) => !(quick && long))
}
