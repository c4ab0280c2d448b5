// Draws the faults of a soak from its seed: the same seed gives the same faults at the same times.
import { createRandom } from '../support/random.ts'

/** What each part may suffer. */
const FAULTS = {
  worker: ['kill', 'terminate', 'stop'],
  api: ['kill', 'terminate', 'stop'],
  redis: ['kill', 'stop', 'cut off'],
  mongodb: ['kill', 'stop', 'cut off'],
} as const

export type Part = keyof typeof FAULTS
/**
 * `kill`: SIGKILL, and started again. `terminate`: SIGTERM, and replaced. `stop`: SIGSTOP, then
 * SIGCONT. `cut off`: its connections stay open and carry nothing.
 */
export type FaultName = (typeof FAULTS)[Part][number]

export interface Fault {
  /**
   * When it begins, in seconds since the start. If the last fault of the same part is not over, it
   * begins after that.
   */
  at: number
  part: Part
  name: FaultName
  /** How long a part is stopped, cut off, or gone before it is started again. */
  seconds: number
  /** Chooses the replica: from 0 to below 1. */
  choice: number
}

/** How far apart faults begin, and how long they last, in seconds: some overlap. */
const APART = [1, 6] as const
const LASTING = [0.5, 8] as const
/** The load begins and ends without faults. */
const CALM_S = 5
/** Workers are the most numerous part, and die most often. */
const PARTS = ['worker', 'worker', 'api', 'redis', 'mongodb'] as const

export function makeSchedule(seed: number, seconds: number): Fault[] {
  const random = createRandom(seed)
  const faults: Fault[] = []
  for (let at = CALM_S; at < seconds - CALM_S; at += random.between(...APART)) {
    const part = random.pick(PARTS)
    faults.push({
      at,
      part,
      name: random.pick(FAULTS[part]),
      seconds: random.between(...LASTING),
      choice: random.next(),
    })
  }
  return faults
}

/** One line about a fault. */
export function describeFault({ at, part, name, seconds }: Fault): string {
  return `${at.toFixed(1).padStart(6)} s  ${name} ${part}${name === 'terminate' ? '' : `, ${seconds.toFixed(1)} s`}`
}
