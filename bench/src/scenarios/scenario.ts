import type { Bench } from '../bench.ts'
import type { Round } from '../measure/round.ts'

/** One measurement. */
export interface Scenario {
  name: string
  /** A heading that describes the scenario. */
  title: string
  /** Takes minutes: quick runs omit it unless it is named. */
  long: boolean
  run(bench: Bench): Promise<Outcome>
}

/** The result of a scenario. */
export interface Outcome {
  measured: Measured[]
  figures: Figure[]
  floors: Floor[]
}

/** All rounds of one contender, and their median figure by figure. */
export interface Measured {
  name: string
  rounds: Round[]
  median: Round
}

/** Another figure. */
export interface Figure {
  what: string
  value: number
  unit: string
}

/** A figure with a bound. */
export interface Floor {
  what: string
  value: number
  bound: number
  is: 'at least' | 'at most'
  reached: boolean
}

/** A figure that must not be below a bound. */
export function atLeast(what: string, value: number, bound: number): Floor {
  return { what, value, bound, is: 'at least', reached: value >= bound }
}

/** A figure that must not be above a bound. */
export function atMost(what: string, value: number, bound: number): Floor {
  return { what, value, bound, is: 'at most', reached: value <= bound }
}
