import type { Scale } from '../scale.ts'
import type { Outcome } from '../scenarios/scenario.ts'
import type { Surroundings } from './describe-surroundings.ts'

/** What one run of one scenario came to, and where. */
export interface Result extends Outcome {
  name: string
  title: string
  /** When it ended, ISO 8601. */
  at: string
  scale: Scale
  where: Surroundings
}
