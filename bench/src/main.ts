import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Bench } from './bench.ts'
import { openBench } from './open-bench.ts'
import { type Options, OptionsError, readOptions } from './options.ts'
import {
  describeMongodb,
  describeSurroundings,
  kindOfServer,
  type Surroundings,
} from './report/describe-surroundings.ts'
import { fillResults, resultsDocument } from './report/documents.ts'
import { printedResult } from './report/print-result.ts'
import { readResults, writeResult } from './report/results.ts'
import { scaleOf } from './scale.ts'
import { againstCheckout } from './scenarios/against.ts'
import { chooseScenarios, scenarios } from './scenarios/choose.ts'
import type { Scenario } from './scenarios/scenario.ts'

const RESULTS = join(import.meta.dirname, '../results')
const PERFORMANCE = join(import.meta.dirname, '../../docs/performance.md')
const say = (line: string) => console.log(line)

try {
  const options = readOptions(process.argv.slice(2))
  if (options.document) await writeDocuments()
  else await measureAll(options)
} catch (error) {
  if (!(error instanceof OptionsError)) throw error
  console.error(error.message)
  process.exitCode = 2
}

/**
 * `pnpm bench`: measures, prints, and stores the results. Exits 1 if a scenario failed; a missed
 * floor is a result, not a failure.
 */
async function measureAll(options: Options): Promise<void> {
  const { against, only, quick } = options
  const chosen = chooseScenarios(
    against === undefined ? scenarios : againstCheckout(resolve(against)),
    only,
    quick,
  )
  const scale = scaleOf(options)
  const folder =
    options.out ?? (scale.full && against === undefined ? RESULTS : join(RESULTS, 'quick'))
  await using parts = new AsyncDisposableStack()
  endInOrder(parts)
  const opened = await openBench(scale, parts, say)
  const where = await describeSurroundings(opened)
  const bench = { ...opened, server: kindOfServer(where) }
  say(
    `${where.cores} × ${where.cpu}, Node ${where.node}, ${where.redis}, ${describeMongodb(where)}`,
  )
  for (const scenario of chosen) await measure(scenario, bench, where, folder)
  say(`\nResults: ${folder}`)
  if (folder === RESULTS) await writeDocuments()
}

async function measure(
  { name, title, run }: Scenario,
  bench: Bench,
  where: Surroundings,
  folder: string,
): Promise<void> {
  say(`\n${name}: ${title}`)
  try {
    const outcome = await run(bench)
    const result = {
      name,
      title,
      at: new Date().toISOString(),
      scale: bench.scale,
      where,
      ...outcome,
    }
    for (const line of printedResult(result)) say(`  ${line}`)
    await writeResult(folder, result)
  } catch (error) {
    console.error(error)
    process.exitCode = 1
  }
}

/**
 * The documents show the newest results of full runs. Also brings their files into the form of this
 * version.
 */
async function writeDocuments(): Promise<void> {
  const results = await readResults(RESULTS)
  for (const result of results) await writeResult(RESULTS, result)
  await writeFile(PERFORMANCE, fillResults(await readFile(PERFORMANCE, 'utf8'), results))
  await writeFile(join(RESULTS, 'README.md'), resultsDocument(results))
}

/** Started processes end with this one; servers and files are released before. */
function endInOrder(parts: AsyncDisposableStack): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => void parts.disposeAsync().finally(() => process.exit(1)))
  }
}
