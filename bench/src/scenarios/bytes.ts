import type { Contender } from '../contenders/contender.ts'
import { databaseUrl } from '../contenders/database.ts'
import { startSluice } from '../contenders/start-sluice.ts'
import { type Bytes, PLACES, readBytes, storedBytes } from '../measure/bytes-of.ts'
import { median } from '../percentiles.ts'
import { makeThreads } from '../threads.ts'
import { byImport } from './import.ts'
import { warmUp } from './post-round.ts'
import type { Scenario } from './scenario.ts'

const CALLERS = 64

/** How a thread is posted. */
export type Posting = 'interactive' | 'import'

/** The name of the figure of a thread's bytes at one place. */
export const bytesOf = (posting: Posting, place: (typeof PLACES)[number]) => `${posting}, ${place}`

/** The name of the figure of a thread's bytes as BSON, indexes aside. */
export const STORED = 'stored'

/** How many bytes of a new thread pass each place, for `docs/scaling.md`. */
export const bytes: Scenario = {
  name: 'bytes',
  title: 'Bytes of a new thread: 64 callers, and one import',
  long: true,
  async run(bench) {
    const name = 'bytes'
    await using sluice = await startSluice(bench, { name })
    await warmUp(bench, sluice, CALLERS)
    const { requests, importThreads, rounds } = bench.scale
    const count = async (posting: Posting, contender: Pick<Contender, 'run'>, threads: number) => {
      const counted: { before: Bytes; after: Bytes }[] = []
      for (let round = 0; round < rounds; round++) {
        const made = makeThreads(`${posting}-${round}`, threads, round, 0)
        const before = await readBytes(bench)
        const { failed } = await contender.run(made, CALLERS)
        if (failed > 0) throw new Error(`${failed} of ${threads} threads were not stored`)
        counted.push({ before, after: await readBytes(bench) })
      }
      return PLACES.flatMap((place) => {
        const value = median(
          counted.map(({ before, after }) => (after[place] - before[place]) / threads),
        )
        // Nothing is known of a server that does not count, as the emulator on disk.
        return value > 0 ? [{ what: bytesOf(posting, place), value, unit: 'bytes' }] : []
      })
    }
    const interactive = await count('interactive', sluice, requests)
    const imported = await count('import', byImport(sluice), importThreads)
    const stored = await storedBytes(databaseUrl(bench.mongodbUrl, `${bench.run}-${name}`))
    return {
      measured: [],
      figures: [...interactive, ...imported, { what: STORED, value: stored, unit: 'bytes' }],
      floors: [],
    }
  },
}
