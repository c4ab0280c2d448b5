import type { Contender } from '../contenders/contender.ts'
import { type Sluice, startSluice } from '../contenders/start-sluice.ts'
import { type ExportFile, ndjsonFile, runImportCommand, slackFile } from '../import-command.ts'
import { type MadeThread, makeThreads } from '../threads.ts'
import { byImport } from './import.ts'
import { interleave, medianOf } from './interleave.ts'
import { postRound, warmUp } from './post-round.ts'
import { atLeast, type Scenario } from './scenario.ts'

/**
 * The cost of reading, shaping and sending an export file, beside the endpoint that takes its
 * threads.
 */
export const importCommand: Scenario = {
  name: 'import-command',
  title: 'sluice import of a Slack zip and of NDJSON, against the endpoint for imports',
  long: false,
  async run(bench) {
    await using sluice = await startSluice(bench)
    await warmUp(bench, sluice, 64)
    const command = (
      fileOf: (threads: readonly MadeThread[]) => ExportFile,
      ...options: string[]
    ) => byCommand(sluice, bench.folder, fileOf, options)
    const contenders = {
      endpoint: byImport(sluice),
      ndjson: command(ndjsonFile),
      slack: command(slackFile),
      'dry run': command(ndjsonFile, '--dry-run'),
    }
    const { rounds, importThreads } = bench.scale
    const names = ['endpoint', 'ndjson', 'slack', 'dry run'] as const
    const measured = await interleave(names, rounds, (name, round) =>
      postRound(
        bench,
        contenders[name],
        makeThreads(`${name}-${round}`, importThreads, round, 0),
        1,
      ),
    )
    const endpoint = medianOf(measured, 'endpoint')
    const against = (name: string) => medianOf(measured, name).rate / endpoint.rate
    return {
      measured,
      figures: [{ what: 'the endpoint', value: endpoint.documentsPerSecond, unit: 'documents/s' }],
      floors: [
        atLeast('rate of a Slack zip, against the endpoint', against('slack'), 0.8),
        atLeast('rate of NDJSON, against the endpoint', against('ndjson'), 0.8),
        atLeast('rate of a dry run of NDJSON, against the endpoint', against('dry run'), 3),
      ],
    }
  },
}

/** Each round has ids of its own: a Slack export's depend on its times, which repeat. */
function byCommand(
  { processes, urls, key }: Sluice,
  folder: string,
  fileOf: (threads: readonly MadeThread[]) => ExportFile,
  options: readonly string[],
): Pick<Contender, 'processes' | 'run'> {
  let round = 0
  return {
    processes,
    run(threads) {
      round += 1
      const own = ['--id-prefix', `round-${round}-`, ...options]
      return runImportCommand(fileOf(threads), threads.length, {
        url: urls[0] ?? '',
        key,
        folder,
        options: own,
      })
    },
  }
}
