import { globSync, readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { CountReporter } from './test/runner/count-reporter.ts'
import { LongestFirst } from './test/runner/longest-first.ts'
import { isFull } from './test/support/scale.ts'

// The kinds of tests and how each runs. `pnpm test --project laws` runs one kind.

const TIME_LIMIT_MS = 120_000

/** Tests in these folders use real servers or processes. All other tests beside the code are unit tests. */
const integrationFolders = [
  'apps/cli',
  'apps/dashboard',
  'packages/queue',
  'packages/servers',
  'packages/store/src/keys',
  'test/runner',
]
const integration = integrationFolders.map((folder) => `${folder}/**/*.test.ts`)
const kinds = ['laws', 'e2e', 'attacks', 'docs', 'bench', 'faults', 'soak']

/** `pnpm test:full` runs only what is longer there than in `pnpm test`. */
const hasFullForm = (file: string) => readFileSync(file, 'utf8').includes('/scale.ts')

export default defineConfig({
  test: {
    watch: false,
    globalSetup: 'test/runner/servers.ts',
    reporters: ['default', new CountReporter()],
    sequence: { sequencer: LongestFirst },
    coverage: { provider: 'v8', include: ['apps/*/src/**/*.ts', 'packages/*/src/**/*.ts'] },
    projects: [
      project('unit', ['{apps,packages}/**/*.test.ts'], ['**/node_modules/**', ...integration]),
      project('integration', integration),
      ...kinds.map((name) => project(name, [`test/${name}/**/*.test.ts`])),
      // Compares rates and bounds times, so it runs alone, after all others.
      alone(project('overload', ['test/overload/**/*.test.ts'])),
    ].filter(({ test: { include } }) => include.length > 0),
  },
})

function alone({ test }: ReturnType<typeof project>) {
  return { test: { ...test, maxWorkers: 1, sequence: { groupOrder: 1 } } }
}

function project(name: string, files: string[], exclude = ['**/node_modules/**']) {
  const include = isFull ? files.flatMap((pattern) => globSync(pattern)).filter(hasFullForm) : files
  return {
    test: {
      name,
      include,
      exclude,
      pool: 'forks' as const,
      // The files that a process runs share the modules that it loaded: loading them for each file took a fifth of the
      // time.
      isolate: false,
      // More than two cores need: many tests wait for a time limit of Sluice.
      maxWorkers: 5,
      testTimeout: TIME_LIMIT_MS,
      hookTimeout: TIME_LIMIT_MS,
      // A busy machine may refuse a post of the bench, which ends it: a measurement with refused posts would be worthless.
      retry: name === 'bench' ? 1 : 0,
      setupFiles: ['test/runner/leaves-nothing.ts'],
      // Node runs the TypeScript as it is, in tests as in production.
      experimental: { viteModuleRunner: false, nodeLoader: false },
    },
  }
}
