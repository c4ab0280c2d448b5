import { readFileSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import type { TestProject, Vitest } from 'vitest/node'
import { openSharedSluice } from '../support/shared-sluice.ts'
import { fillCompileCache } from './fill-compile-cache.ts'
import { openTestServers } from './open-test-servers.ts'
import { installPrograms } from './programs.ts'
import { WITH_SERVERS } from './with-servers.ts'

// Opens the servers and the Sluice that tests share, once per run.

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Vitest's global setup: puts `REDIS_URL` and `MONGODB_URL` into the environment that test
 * processes inherit. Returns how to undo it.
 */
export async function setup({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  const files = await chosenFiles(vitest)
  const usesServers = files.some((file) => WITH_SERVERS.some((folder) => file.startsWith(folder)))
  installPrograms(files.map((file) => readFileSync(file, 'utf8')).join('\n'), {
    usesServers,
    required: process.env.SLUICE_TEST_PROGRAMS === 'required',
    say: console.log,
  })
  if (!usesServers) return undefined
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  const [servers] = await Promise.all([
    openTestServers({ dataDir, env: process.env, say: console.log, findContainers }),
    fillCompileCache(process.env),
  ])
  const interrupted = () => void servers.stop(AbortSignal.abort()).finally(() => process.exit(1))
  const removeNow = () => rmSync(dataDir, { recursive: true, force: true })
  // On SIGINT and SIGTERM Vitest exits without the teardown below, and it does not handle SIGHUP.
  for (const signal of signals) process.once(signal, interrupted)
  process.once('exit', removeNow)
  Object.assign(process.env, { REDIS_URL: servers.redisUrl, MONGODB_URL: servers.mongodbUrl })
  const endSluice = files.some(sharesSluice) ? await openSharedSluice() : undefined
  return async () => {
    await endSluice?.()
    // No longer asked, but killed: their data is removed.
    await servers.stop(AbortSignal.abort())
    await rm(dataDir, { recursive: true, force: true })
    for (const signal of signals) process.off(signal, interrupted)
    process.off('exit', removeNow)
  }
}

/** Whether a test file imports the shared Sluice. */
const sharesSluice = (file: string) => readFileSync(file, 'utf8').includes('/shared-sluice.ts')

/** Loads Testcontainers, which takes most of a second, only where it is needed. */
async function findContainers() {
  return (await import('./containers.ts')).findContainers()
}

/**
 * The paths of the chosen test files, from the root. Throws if a name matches no file: a misspelt
 * name must not look like a test that passed.
 */
async function chosenFiles(vitest: Vitest): Promise<string[]> {
  const names = namedFiles(vitest)
  for (const name of names) {
    if ((await vitest.globTestSpecifications([name])).length === 0)
      throw new Error(
        `No test file: ${name}. Those that are called NAME.full.test.ts run in \`test:full\` only.`,
      )
  }
  return (await vitest.globTestSpecifications(names)).map(({ moduleId }) =>
    relative(vitest.config.root, moduleId),
  )
}

/** Vitest keeps the names of the command line in a property that its types leave out. */
function namedFiles(vitest: Vitest): string[] {
  const names = 'filenamePattern' in vitest ? vitest.filenamePattern : undefined
  return Array.isArray(names) ? names.map(String) : []
}
