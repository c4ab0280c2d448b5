import fc from 'fast-check'
import { explore } from './explore.ts'
import { HISTORY_KINDS, type History, type HistoryKind } from './history.ts'

// Explores random histories of one kind and describes a failure by its smallest history.

export interface Options {
  runs: number
  seed: number
  /** Describes a failure by its smallest history, which takes many more runs. */
  shrinks?: boolean
}

/** A history of a hot thread has thousands of steps, and counts as this number of others. */
const HOT_THREAD_COUNTS = 100

/**
 * @throws an error with the seed, the smallest failing history, and the commands of its run in the
 * order in which they took effect.
 */
export async function check(
  kind: HistoryKind,
  { runs, seed, shrinks = true }: Options,
): Promise<void> {
  const property = fc.asyncProperty(HISTORY_KINDS[kind], (one) => explore(one))
  const result = await fc.check(property, {
    numRuns: kind === 'a hot thread' ? Math.ceil(runs / HOT_THREAD_COUNTS) : runs,
    seed,
    endOnFailure: !shrinks,
  })
  if (!result.failed) return
  const [failing] = result.counterexample ?? []
  const trace = failing === undefined ? [] : await traceOf(failing)
  const about = `a law is broken by ${kind}, seed ${seed}, history ${result.numRuns}`
  throw new Error(
    `${about}: ${result.errorInstance instanceof Error ? result.errorInstance.stack : result.errorInstance}\n${JSON.stringify(failing, undefined, 1)}\n${trace.join('\n')}`,
    { cause: result.errorInstance },
  )
}

async function traceOf(failing: History): Promise<string[]> {
  const lines: string[] = []
  await explore(failing, (line) => lines.push(line)).catch(() => {})
  return lines
}
