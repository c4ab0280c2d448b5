import type { Round } from '../measure/round.ts'
import type { Scale } from '../scale.ts'
import type { Measured, Outcome } from '../scenarios/scenario.ts'
import type { Surroundings } from './describe-surroundings.ts'

/** The result of one run of one scenario, and its surroundings. */
export interface Result extends Omit<Outcome, 'measured'> {
  /** A file has only the CPU times of each round, whose spread `docs/scaling.md` shows. */
  measured: (Omit<Measured, 'rounds'> & { rounds: Pick<Round, 'cpuUs'>[] })[]
  name: string
  title: string
  /** When it ended, ISO 8601. */
  at: string
  scale: Scale
  where: Surroundings
}
