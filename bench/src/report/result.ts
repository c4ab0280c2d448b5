import type { Scale } from '../scale.ts'
import type { Measured, Outcome } from '../scenarios/scenario.ts'
import type { Surroundings } from './describe-surroundings.ts'

/** The result of one run of one scenario, and its surroundings. */
export interface Result extends Omit<Outcome, 'measured'> {
  measured: Omit<Measured, 'rounds'>[]
  name: string
  title: string
  /** When it ended, ISO 8601. */
  at: string
  scale: Scale
  where: Surroundings
}
