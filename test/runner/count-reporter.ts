import { availableParallelism, loadavg } from 'node:os'
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node'
import { commandFor, isMissing, type Program } from './programs.ts'

type Errors = Parameters<NonNullable<Reporter['onTestRunEnd']>>[1]
type Reason = Parameters<NonNullable<Reporter['onTestRunEnd']>>[2]

interface Counts {
  passed: number
  failed: number
  skipped: number
  /** The skipped tests that need a program that is missing. */
  without: Map<Program, number>
}

/**
 * Prints `N passed, N failed` as the very last line of a run, for programs that read it, and `, N
 * skipped` after it if tests were skipped. The lines before it name missing servers, each missing
 * program, and the command that installs it. A file that does not load, a hook that fails and an
 * error outside of any test count as failed. The exit code is 1 where anything failed, and where
 * nothing passed. Says so if the run was interrupted, and if the machine was busy when it began.
 */
export class CountReporter implements Reporter {
  #counts: Counts = { passed: 0, failed: 0, skipped: 0, without: new Map() }
  #watches = false
  #isOpen = false
  /** Before the first test: the run itself loads every core. */
  readonly #load = loadavg()[0] ?? 0
  readonly #lack: string | undefined
  readonly #unserved: number

  /**
   * @param lack why the servers of tests can't be had. @param unserved the number of files that are
   * skipped for that.
   */
  constructor(lack: string | undefined, unserved: number) {
    this.#lack = lack
    this.#unserved = unserved
  }

  onInit({ config }: Vitest): void {
    this.#watches = config.watch
    if (!this.#watches) process.once('exit', () => this.#print())
  }

  onTestRunStart(): void {
    this.#isOpen = true
  }

  /** What an interrupted run counts: Vitest ends without telling the end of the run. */
  onTestCaseResult(test: TestCase): void {
    const { state } = test.result()
    if (state === 'passed' || state === 'failed') this.#counts[state]++
  }

  onTestRunEnd(modules: readonly TestModule[], errors: Errors, reason: Reason): void {
    this.#counts = countsOf(modules, errors.length)
    this.#isOpen = reason === 'interrupted'
    if (this.#watches) this.#print()
    else if (reason !== 'passed' || this.#counts.failed > 0 || this.#counts.passed === 0)
      process.exitCode = 1
  }

  #print(): void {
    const { passed, failed, skipped, without } = this.#counts
    const cores = availableParallelism()
    if (this.#load > cores)
      console.log(
        `The machine was busy (load ${Math.round(this.#load)}, ${cores} cores): tests may fail for lack of time.`,
      )
    if (this.#isOpen)
      console.log('The run was interrupted: the next line counts the tests that ran.')
    if (this.#lack !== undefined)
      console.log(
        `${this.#unserved} test files were skipped without Redis and MongoDB: ${this.#lack}`,
      )
    for (const [program, count] of without)
      console.log(
        `${count} ${count === 1 ? 'test was' : 'tests were'} skipped without ${program}: ${commandFor(program)}`,
      )
    console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  }
}

function countsOf(modules: readonly TestModule[], errors: number): Counts {
  const counts: Counts = { passed: 0, failed: errors, skipped: 0, without: new Map() }
  for (const module of modules) {
    for (const suite of [module, ...module.children.allSuites()])
      counts.failed += suite.errors().length
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      if (state === 'passed' || state === 'skipped') counts[state]++
      else counts.failed++
      const { needs } = test.meta()
      if (state === 'skipped' && needs !== undefined && isMissing(needs))
        counts.without.set(needs, 1 + (counts.without.get(needs) ?? 0))
    }
  }
  return counts
}
