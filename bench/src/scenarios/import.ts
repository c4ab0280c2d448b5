import type { Contender } from '../contenders/contender.ts'
import { openRawInserts } from '../contenders/raw-inserts.ts'
import { AS_START, type Sluice, startSluice } from '../contenders/start-sluice.ts'
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
    await using started = await startSluice(bench, AS_START)
    for (const one of [sluice, started]) await warmUp(bench, one, 64)
    await using raw = await openRawInserts(bench)
    await using indexed = await openRawInserts(bench, {
      name: 'raw-indexed',
      indexesOf: started.database,
    })
    const contenders = {
      sluice: byImport(sluice),
      'sluice-start': byImport(started),
      raw,
      'raw-indexed': indexed,
    }
    const { rounds, importThreads } = bench.scale
    const names = ['sluice', 'sluice-start', 'raw', 'raw-indexed'] as const
    const measured = await interleave(names, rounds, (name, round) =>
      postRound(
        bench,
        contenders[name],
        makeThreads(`import-${round}`, importThreads, round, 0),
        1,
      ),
    )
    const documents = (name: (typeof names)[number]) => medianOf(measured, name).documentsPerSecond
    const against = (name: 'raw' | 'raw-indexed') => documents('sluice-start') / documents(name)
    return {
      measured,
      figures: [],
      floors: [
        atLeast('documents a second, against raw insertMany', against('raw'), 0.5),
        atLeast(
          "documents a second, against raw insertMany with Sluice's indexes",
          against('raw-indexed'),
          0.5,
        ),
      ],
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
