import type { NamedProcess } from '../measure/round.ts'
import type { Run } from '../percentiles.ts'
import type { MadeThread } from '../threads.ts'

/** One of the systems that are measured side by side. */
export interface Contender extends AsyncDisposable {
  name: string
  processes: readonly NamedProcess[]
  /** Stores these threads for a number of callers; each caller waits for one thread at a time. */
  run(threads: readonly MadeThread[], callers: number): Promise<Run>
}

/** A contender that receives its threads over HTTP. */
export interface HttpContender extends Contender {
  urls: readonly string[]
  key: string
}
