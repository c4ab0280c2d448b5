import type { NamedProcess } from './measure/round.ts'
import type { Scale } from './scale.ts'

/** What every scenario works with. */
export interface Bench {
  scale: Scale
  redisUrl: string
  mongodbUrl: string
  /** Redis, MongoDB and the load generator itself, as far as they can be told. */
  surroundings: readonly NamedProcess[]
  /** MongoDB walks the collection for a filter of `_id` and one more field, so Sluice's collections get an index for it. */
  guardsNeedIndex: boolean
  /** Holds the logs of what is started. */
  folder: string
  /** Tells this run's databases and queues from all others. */
  run: string
}
