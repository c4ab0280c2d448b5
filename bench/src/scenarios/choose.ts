import { OptionsError } from '../options.ts'
import { batch } from './batch.ts'
import { crowdingBatch } from './crowding-batch.ts'
import { endurance } from './endurance.ts'
import { fullQueue } from './full-queue.ts'
import { growingSource } from './growing-source.ts'
import { longThread } from './long-thread.ts'
import { openLoop } from './open-loop.ts'
import { replicas } from './replicas.ts'
import { reposts } from './reposts.ts'
import type { Scenario } from './scenario.ts'
import { callers1, callers64, callers256 } from './side-by-side.ts'

/** All that is measured, in the order in which it is. */
export const scenarios: readonly Scenario[] = [
  callers64,
  callers256,
  callers1,
  reposts,
  batch,
  replicas,
  openLoop,
  endurance,
  longThread,
  growingSource,
  fullQueue,
  crowdingBatch,
]

/** The scenarios of these names; without names all, or with `quick` those that take no minutes. Throws OptionsError for a name that there is not. */
export function chooseScenarios(names: readonly string[], quick: boolean): readonly Scenario[] {
  const unknown = names.filter((name) => !scenarios.some((scenario) => scenario.name === name))
  if (unknown.length > 0) {
    throw new OptionsError(
      `There is no scenario ${unknown.join(', ')}; there are ${scenarios.map(({ name }) => name).join(', ')}`,
    )
  }
  if (names.length > 0) return scenarios.filter(({ name }) => names.includes(name))
  return scenarios.filter(({ long }) => !(quick && long))
}
