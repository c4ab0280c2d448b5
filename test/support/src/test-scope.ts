import { afterAll, beforeAll, type RunnerTestSuite, type TestContext } from 'vitest'

// One type for a test and for a suite, so that a function can open something for either and have it
// closed at the end.

/** A test, or a suite whose tests share something. */
export interface TestScope {
  readonly task: Pick<TestContext['task'], 'name'> & {
    readonly result?: { readonly state: string } | undefined
  }
  /** Has something done at its end; what was registered last is done first. */
  onTestFinished(cleanUp: () => unknown): void
}

/**
 * Sets up what all tests of the enclosing suite or file share, and cleans it up after the last one.
 * Like `beforeAll`, with a scope to register clean-ups with.
 */
export function beforeSuite(setUp: (suite: TestScope) => Promise<void>): void {
  const cleanUps: (() => unknown)[] = []
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the first parameter's source which fixtures are asked for.
  beforeAll(async ({}, suite) => {
    const task = {
      name: suite.name,
      get result() {
        return { state: hasFailed(suite) ? 'fail' : 'pass' }
      },
    }
    await setUp({ task, onTestFinished: (cleanUp) => void cleanUps.push(cleanUp) })
  })
  // Runs if the set-up failed, too.
  afterAll(async () => {
    for (const cleanUp of cleanUps.reverse()) await cleanUp()
  })
}

function hasFailed(suite: Readonly<RunnerTestSuite>): boolean {
  return suite.tasks.some(
    (task) => task.result?.state === 'fail' || ('tasks' in task && hasFailed(task)),
  )
}
