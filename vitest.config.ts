import { defineConfig, type TestUserConfig } from 'vitest/config'
import { CountReporter } from './test/runner/count-reporter.ts'
import { SpreadFaults } from './test/runner/spread-faults.ts'

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

export default defineConfig({
  test: {
    watch: false,
    globalSetup: 'test/runner/servers.ts',
    reporters: ['default', new CountReporter()],
    sequence: { sequencer: SpreadFaults },
    coverage: { provider: 'v8', include: ['apps/*/src/**/*.ts', 'packages/*/src/**/*.ts'] },
    projects: [
      project('unit', {
        include: ['{apps,packages}/**/*.test.ts'],
        exclude: ['**/node_modules/**', ...integration],
        // The files that a process runs share the modules that it loaded: loading them took a third of the time.
        isolate: false,
      }),
      project('integration', { include: integration }),
      ...['laws', 'e2e', 'attacks', 'docs', 'bench'].map((name) =>
        project(name, { include: [`test/${name}/**/*.test.ts`] }),
      ),
      project('faults', {
        include: ['test/faults/**/*.test.ts'],
        setupFiles: ['test/runner/leaves-nothing.ts', 'test/runner/in-turn.ts'],
      }),
    ],
  },
})

function project(name: string, files: TestUserConfig) {
  return {
    test: {
      name,
      pool: 'forks' as const,
      // One of them runs the fault tests in turn, which mostly wait.
      maxWorkers: 3,
      testTimeout: TIME_LIMIT_MS,
      hookTimeout: TIME_LIMIT_MS,
      setupFiles: ['test/runner/leaves-nothing.ts'],
      // Node runs the TypeScript as it is, in tests as in production.
      experimental: { viteModuleRunner: false, nodeLoader: false },
      ...files,
    },
  }
}
