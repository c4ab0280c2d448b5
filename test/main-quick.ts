import { existsSync } from 'node:fs'
import { glob, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { openServers } from '@sluice/servers'

const timeLimitMs = 10_000

/** Where tests are looked for when none is named. */
const folders = ['apps', 'packages', 'test']

interface Counts {
  passed: number
  failed: number
}

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => interrupted.abort())

const { passed, failed } = await testAgainstServers(process.argv.slice(2))
if (passed === 0 || failed > 0 || interrupted.signal.aborted) process.exitCode = 1
console.log(`${passed} passed, ${failed} failed`)

/** Runs the test files that are named, or all, against servers of their own in a temporary folder. */
async function testAgainstServers(named: readonly string[]): Promise<Counts> {
  const files = await testFiles(named.length > 0 ? named : folders)
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  const { signal } = interrupted
  try {
    const servers = await openServers({ dataDir, durable: false, env: process.env, say: console.log, signal })
    Object.assign(process.env, { REDIS_URL: servers.redisUrl, MONGODB_URL: servers.mongodbUrl })
    return await runTests(files).finally(() => servers.stop(signal))
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** Throws where a name stands for no file: a misspelt name must not look like a test that passed. */
async function testFiles(names: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(names.map(filesOf))
  return [...new Set(found.flat())].sort()
}

async function filesOf(name: string): Promise<readonly string[]> {
  if (name.endsWith('.ts') && existsSync(name)) return [name]
  const files: string[] = []
  const exclude = (path: string) => path.endsWith('node_modules')
  for await (const file of glob(join(name, '**/*.test.ts'), { exclude })) files.push(file)
  if (files.length === 0 && !folders.includes(name)) throw new Error(`No test file: ${name}`)
  return files
}

async function runTests(files: readonly string[]): Promise<Counts> {
  const counts: Counts = { passed: 0, failed: 0 }
  if (files.length === 0) return counts
  const { signal } = interrupted
  const events = run({ files: [...files], concurrency: 2, execArgv: [`--test-timeout=${timeLimitMs}`], signal })
  events.on('test:summary', ({ file, counts: { passed, tests, skipped, todo } }) => {
    // A summary without a file is that of the whole run; what neither passed nor was set aside has failed.
    if (file === undefined) Object.assign(counts, { passed, failed: tests - passed - skipped - todo })
  })
  await pipeline(events, new spec(), process.stdout, { end: false })
  return counts
}
