import { defineConfig } from 'vitest/config'
import { CountReporter } from './test/runner/count-reporter.ts'

// Which tests belong together, and how they run. Run one kind by `pnpm test --project laws`.

const TIME_LIMIT_MS = 120_000

/** Folders beside whose code tests use real servers or processes; all other tests beside the code are unit tests. */
const integrationFolders = [
  'apps/cli',
  'apps/dashboard',
  'packages/queue',
  'packages/servers',
  'packages/store/src/keys',
]
const integration = integrationFolders.map((folder) => `${folder}/**/*.test.ts`)

export default defineConfig({
  test: {
    watch: false,
    globalSetup: 'test/runner/servers.ts',
    reporters: ['default', new CountReporter()],
    coverage: { provider: 'v8', include: ['apps/*/src/**/*.ts', 'packages/*/src/**/*.ts'] },
    projects: [
      project('unit', ['{apps,packages}/**/*.test.ts'], integration),
      project('integration', integration),
      project('laws', ['test/laws/**/*.test.ts']),
      project('e2e', ['test/e2e/**/*.test.ts']),
      project('docs', ['test/docs/**/*.test.ts']),
      project('bench', ['test/bench/**/*.test.ts']),
      // They kill servers and processes and freeze them: one file at a time, after all others.
      project('faults', ['test/faults/**/*.test.ts'], [], { maxWorkers: 1, sequence: { groupOrder: 1 } }),
    ],
  },
})

function project(
  name: string,
  include: string[],
  exclude: string[] = [],
  more: { maxWorkers?: number; sequence?: { groupOrder: number } } = {},
) {
  return {
    test: {
      name,
      include,
      exclude: ['**/node_modules/**', ...exclude],
      pool: 'forks' as const,
      maxWorkers: 2,
      testTimeout: TIME_LIMIT_MS,
      hookTimeout: TIME_LIMIT_MS,
      teardownTimeout: 30_000,
      experimental: { viteModuleRunner: false, nodeLoader: false },
      ...more,
    },
  }
}
