import type { Contender } from '../contenders/contender.ts'
import { openRawInserts } from '../contenders/raw-inserts.ts'
import { type Sluice, startSluice } from '../contenders/start-sluice.ts'
import { importBodies, postImports } from '../post-import.ts'
import { makeThreads } from '../threads.ts'
import { interleave, medianOf } from './interleave.ts'
import { postRound, warmUp } from './post-round.ts'
import { atLeast, type Scenario } from './scenario.ts'

/** A burst through the endpoint for imports, against the limit. */
export const ndjsonImport: Scenario = {
  name: 'import',
  title: 'One NDJSON import, against raw insertMany of the same documents',
  long: false,
  async run(bench) {
    await using sluice = await startSluice(bench)
    await using raw = openRawInserts(bench)
    await warmUp(bench, sluice, 64)
    const contenders = { sluice: byImport(sluice), raw }
    const { rounds, importThreads } = bench.scale
    const measured = await interleave(['sluice', 'raw'], rounds, (name, round) =>
      postRound(
        bench,
        contenders[name],
        makeThreads(`import-${round}`, importThreads, round, 0),
        1,
      ),
    )
    const ratio =
      medianOf(measured, 'sluice').documentsPerSecond / medianOf(measured, 'raw').documentsPerSecond
    return {
      measured,
      figures: [],
      floors: [atLeast('documents a second, against raw insertMany', ratio, 0.5)],
    }
  },
}

/** Sluice, with its rounds posted as imports; its times are times of whole imports. */
export function byImport(sluice: Sluice): Pick<Contender, 'processes' | 'run'> {
  return {
    processes: sluice.processes,
    async run(threads) {
      const bodies = importBodies(threads)
      const began = performance.now()
      await postImports(sluice.urls[0] ?? '', sluice.key, bodies)
      const took = performance.now() - began
      return {
        threads: threads.length,
        rate: (threads.length / took) * 1000,
        p50: took,
        p99: took,
        failed: 0,
      }
    },
  }
}
