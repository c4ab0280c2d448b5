import type { NamedProcess } from './measure/round.ts'
import type { KindOfServer } from './report/describe-surroundings.ts'
import type { Scale } from './scale.ts'

/** The servers, folders and names that every scenario uses. */
export interface Bench {
  scale: Scale
  redisUrl: string
  mongodbUrl: string
  server: KindOfServer
  /**
   * MongoDB's data ends with the run, so no database needs to be dropped: the emulator takes
   * minutes for that.
   */
  isMongodbOwn: boolean
  /** Redis, MongoDB and the load generator itself, where their processes are known. */
  surroundings: readonly NamedProcess[]
  /** Holds the logs of the started processes. */
  folder: string
  /** Distinguishes this run's databases and queues from all others. */
  run: string
}
