import fc from 'fast-check'
import { explore } from './explore.ts'
import { HISTORY_KINDS, type History } from './history.ts'

// Explores random histories of one kind and describes a failure by its smallest history.

export interface Options {
  runs: number
  seed: number
  /** Describes a failure by its smallest history, which takes many more runs. */
  shrinks?: boolean
}

/** @throws an error that holds the seed, the smallest failing history, and the commands of its run in the order in which they took effect. */
export async function check(kind: keyof typeof HISTORY_KINDS, { runs, seed, shrinks = true }: Options): Promise<void> {
  const property = fc.asyncProperty(HISTORY_KINDS[kind], (one) => explore(one))
  const result = await fc.check(property, { numRuns: runs, seed, endOnFailure: !shrinks })
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
