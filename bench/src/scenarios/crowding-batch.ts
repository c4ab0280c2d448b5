import { setTimeout as pause } from 'node:timers/promises'
import { startSluice } from '../contenders/start-sluice.ts'
import { runOf } from '../open-loop.ts'
import { batchBodies, postBatches } from '../post-batch.ts'
import { makeThreads, renamed, takeSome } from '../threads.ts'
import { warmUp } from './post-round.ts'
import type { Scenario } from './scenario.ts'
import { whileOthersPost } from './while-others-post.ts'

const TEMPLATE = 'batch-000'

/** What an importer's huge batch does to those who post single threads meanwhile. */
export const crowdingBatch: Scenario = {
  name: 'crowding-batch',
  title: 'Single posts while an importer sends a batch of 200,000 threads',
  long: true,
  async run(bench) {
    const { requests, crowdingBatchThreads, openLoopSeconds } = bench.scale
    await using sluice = await startSluice(bench)
    await warmUp(bench, sluice, 64)
    const templates = makeThreads(TEMPLATE, requests, 6_000, 0)
    const bodies = batchBodies(takeSome(renamed(templates, TEMPLATE), crowdingBatchThreads))
    const calm = runOf(await whileOthersPost(bench, sluice, 'calm-0000', () => pause(openLoopSeconds * 1000)))
    const began = performance.now()
    const busy = runOf(
      await whileOthersPost(bench, sluice, 'others-00', () => postBatches(sluice.urls[0] ?? '', sluice.key, bodies)),
    )
    const seconds = (performance.now() - began) / 1000
    const figures = [
      { what: 'p50 of single posts without the batch', value: calm.p50, unit: 'ms' },
      { what: 'p50 during the batch', value: busy.p50, unit: 'ms' },
      { what: 'p99 of single posts without the batch', value: calm.p99, unit: 'ms' },
      { what: 'p99 during the batch', value: busy.p99, unit: 'ms' },
      { what: 'single posts that failed', value: calm.failed + busy.failed, unit: '' },
      { what: 'the batch', value: crowdingBatchThreads / seconds, unit: 'threads/s' },
    ]
    return { measured: [], figures, floors: [] }
  },
}
