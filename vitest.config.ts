import { globSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { CountReporter } from './test/runner/count-reporter.ts'
import { LongestFirst } from './test/runner/longest-first.ts'
import { lackOfServers, WITH_SERVERS } from './test/runner/with-servers.ts'
import { isFull } from './test/support/scale.ts'

// How tests run. All tests but those that run alone form one project, because a process of Vitest
// runs files of one project only, and each start of such a process takes most of a second.

/** Ends a test that hangs. On a busy machine the longer forms need minutes. */
const TIME_LIMIT_MS = isFull ? 360_000 : 120_000
const NODE_MODULES = '**/node_modules/**'
/** These compare rates and bound times, so they run after all others, one at a time. */
const ALONE = 'test/overload/*.full.test.ts'
/**
 * In their full form these compute for minutes, and wait for nothing. They run beside those that
 * run alone, which wait more than they compute, and leave them the processors.
 */
const COMPUTING = isFull ? ['test/laws/{explorer,known-histories,merge}.test.ts'] : []

const lack = await lackOfServers()
/** Skipped, if this machine can't have their servers. */
const unserved = lack === undefined ? [] : WITH_SERVERS.map((place) => `${place}{/**/,}*.test.ts`)

/** Takes long, and tests what few changes break, or has a faster test of its kind. */
const leftOut = isFull ? [] : ['**/*.full.test.ts']

export default defineConfig({
  test: {
    watch: false,
    globalSetup: 'test/runner/servers.ts',
    reporters: [
      'default',
      new CountReporter(lack, globSync(unserved, { exclude: [NODE_MODULES, ...leftOut] }).length),
    ],
    sequence: { sequencer: LongestFirst },
    coverage: { provider: 'v8', include: ['apps/*/src/**/*.ts', 'packages/*/src/**/*.ts'] },
    projects: [
      project('tests', ['{apps,packages,test}/**/*.test.ts'], [NODE_MODULES, ALONE, ...COMPUTING]),
      last(project('overload', [ALONE]), 'test/runner/one-at-a-time.ts'),
      last(project('computing', COMPUTING), 'test/runner/low-priority.ts'),
    ],
  },
})

function last({ test }: ReturnType<typeof project>, setup: string) {
  const setupFiles = [...test.setupFiles, setup]
  return { test: { ...test, setupFiles, maxWorkers: 2, sequence: { groupOrder: 1 } } }
}

function project(name: string, include: string[], exclude = [NODE_MODULES]) {
  return {
    test: {
      name,
      include,
      exclude: [...exclude, ...unserved, ...leftOut],
      pool: 'forks' as const,
      // The files that a process runs share the modules that it loaded: loading them for each file
      // took a fifth of the time.
      isolate: false,
      // More than two cores need, because many tests wait for a time limit of Sluice. With one more,
      // V8 optimises programs much later on two busy cores, and commands time out.
      maxWorkers: 4,
      testTimeout: TIME_LIMIT_MS,
      hookTimeout: TIME_LIMIT_MS,
      setupFiles: ['test/runner/leaves-nothing.ts'],
      // Node runs the TypeScript as it is, in tests as in production.
      experimental: { viteModuleRunner: false, nodeLoader: false },
    },
  }
}
