// The scope of a program that uses what tests use: it cleans up as the end of a test would.
import type { TestScope } from '@sluice/test-support'

/** Opens a scope. Its owner ends it, and says whether all went well: then nothing is kept as evidence. */
export function openScope(name: string): TestScope & { end(passed: boolean): Promise<void> } {
  const cleanUps: (() => unknown)[] = []
  const result = { state: 'run' }
  return {
    task: { name, result },
    onTestFinished: (cleanUp) => void cleanUps.push(cleanUp),
    async end(passed) {
      result.state = passed ? 'pass' : 'fail'
      for (const cleanUp of cleanUps.toReversed()) await cleanUp()
    },
  }
}
