import type { Scale } from '../scale.ts'
import type { Outcome } from '../scenarios/scenario.ts'
import type { Surroundings } from './describe-surroundings.ts'

/** The result of one run of one scenario, and its surroundings. */
export interface Result extends Outcome {
  name: string
  title: string
  /** When it ended, ISO 8601. */
  at: string
  scale: Scale
  where: Surroundings
}
