import type { NamedProcess } from '../measure/round.ts'
import type { Run } from '../percentiles.ts'
import type { MadeThread } from '../threads.ts'

/** One of those that are measured side by side. */
export interface Contender extends AsyncDisposable {
  name: string
  processes: readonly NamedProcess[]
  /** Stores these threads for so many callers, each of whom waits for one at a time. */
  run(threads: readonly MadeThread[], callers: number): Promise<Run>
}

/** One that is spoken to over HTTP. */
export interface HttpContender extends Contender {
  urls: readonly string[]
  key: string
}
