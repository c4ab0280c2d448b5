import { setTimeout as pause } from 'node:timers/promises'
import { startSluice } from '../contenders/start-sluice.ts'
import { runOf } from '../open-loop.ts'
import { importBodies, postImports } from '../post-import.ts'
import { makeThreads, renamed, takeSome } from '../threads.ts'
import { warmUp } from './post-round.ts'
import type { Scenario } from './scenario.ts'
import { whileOthersPost } from './while-others-post.ts'

const TEMPLATE = 'import-00'

/** How a huge import affects callers that post single threads. */
export const crowdingImport: Scenario = {
  name: 'crowding-import',
  title: 'Single posts while an importer sends an import of 200,000 threads',
  long: true,
  async run(bench) {
    const { requests, crowdingImportThreads, openLoopSeconds } = bench.scale
    await using sluice = await startSluice(bench)
    await warmUp(bench, sluice, 64)
    const templates = makeThreads(TEMPLATE, requests, 6_000, 0)
    const bodies = importBodies(takeSome(renamed(templates, TEMPLATE), crowdingImportThreads))
    const calm = runOf(
      await whileOthersPost(bench, sluice, 'calm-0000', () => pause(openLoopSeconds * 1000)),
    )
    const began = performance.now()
    const busy = runOf(
      await whileOthersPost(bench, sluice, 'others-00', () =>
        postImports(sluice.urls[0] ?? '', sluice.key, bodies),
      ),
    )
    const seconds = (performance.now() - began) / 1000
    const figures = [
      { what: 'p50 of single posts without the import', value: calm.p50, unit: 'ms' },
      { what: 'p50 during the import', value: busy.p50, unit: 'ms' },
      { what: 'p99 of single posts without the import', value: calm.p99, unit: 'ms' },
      { what: 'p99 during the import', value: busy.p99, unit: 'ms' },
      { what: 'single posts that failed', value: calm.failed + busy.failed, unit: '' },
      { what: 'the import', value: crowdingImportThreads / seconds, unit: 'threads/s' },
    ]
    return { measured: [], figures, floors: [] }
  },
}
