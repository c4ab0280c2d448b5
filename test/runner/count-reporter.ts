import type { Reporter, TestModule, Vitest } from 'vitest/node'

type Errors = Parameters<NonNullable<Reporter['onTestRunEnd']>>[1]
type Reason = Parameters<NonNullable<Reporter['onTestRunEnd']>>[2]

interface Counts {
  passed: number
  failed: number
}

/**
 * Prints `N passed, N failed` as the very last line of a run, for programs that read it. A file that does not load, a
 * hook that fails and an error outside of any test count as failed; a skipped test counts as neither. The exit code is
 * 1 where anything failed, and where nothing passed.
 */
export class CountReporter implements Reporter {
  #counts: Counts = { passed: 0, failed: 0 }
  #watches = false

  onInit({ config }: Vitest): void {
    this.#watches = config.watch
    if (!this.#watches) process.once('exit', () => this.#print())
  }

  onTestRunEnd(modules: readonly TestModule[], errors: Errors, reason: Reason): void {
    this.#counts = countsOf(modules, errors.length)
    if (this.#watches) this.#print()
    else if (reason !== 'passed' || this.#counts.failed > 0 || this.#counts.passed === 0) process.exitCode = 1
  }

  #print(): void {
    console.log(`${this.#counts.passed} passed, ${this.#counts.failed} failed`)
  }
}

function countsOf(modules: readonly TestModule[], errors: number): Counts {
  const counts = { passed: 0, failed: errors }
  for (const module of modules) {
    for (const suite of [module, ...module.children.allSuites()]) counts.failed += suite.errors().length
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      if (state === 'passed') counts.passed++
      else if (state !== 'skipped') counts.failed++
    }
  }
  return counts
}
