import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { requiredUrl } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { fileNameOf, readResults } from '../../bench/src/report/results.ts'

const run = promisify(execFile)
const MAIN = fileURLToPath(import.meta.resolve('../../bench/src/main.ts'))

/**
 * Runs the benchmark on so few requests that it takes seconds. Returns its output and the folder of
 * its results.
 */
async function runBench(
  t: TestContext,
  ...args: string[]
): Promise<{ stdout: string; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const env = {
    ...process.env,
    REDIS_URL: requiredUrl('REDIS_URL'),
    MONGODB_URL: requiredUrl('MONGODB_URL'),
  }
  const tiny = ['--quick', '--requests', '24', '--rounds', '1', '--out', folder]
  const { stdout } = await run(process.execPath, [MAIN, ...tiny, ...args], {
    env,
    timeout: 100_000,
  })
  return { stdout, folder }
}

const resultIn = async (folder: string, name: string) => {
  const result = (await readResults(folder)).find((one) => one.name === name)
  assert(result !== undefined)
  return result
}

// A busy machine may refuse a post of the bench, which ends it: a measurement with refused posts
// would be worthless.
const AGAIN = { retry: 1 }

test(
  'a small run measures Sluice beside every peer, and each answers all requests',
  AGAIN,
  async (t) => {
    const { stdout, folder } = await runBench(t, '--only', 'callers-64')
    const result = await resultIn(folder, 'callers-64')
    const { measured, where } = result
    const names = measured.map(({ name }: { name: string }) => name)
    assert.deepEqual(names, ['sluice', 'sluice-start', 'textbook', 'upserts', 'bulk-write', 'raw'])
    for (const { name, median } of measured) {
      assert.equal(median.failed, 0, `${name} left requests unanswered`)
      assert.ok(
        median.rate > 0 && median.p50 > 0 && median.p99 >= median.p50,
        `${name} was not measured`,
      )
    }
    assert.equal(where.node, process.version)
    assert.match(stdout, /rate.*, against textbook: .*not judged/)
    assert.match(
      await readFile(join(folder, `${fileNameOf(result)}.svg`), 'utf8'),
      /^<svg .*textbook.*<\/svg>\n$/s,
    )
  },
)

// Each of these starts several Sluices, which takes half a minute on a busy machine.
test('a small run posts unchanged threads again, and an import', AGAIN, async (t) => {
  const { folder } = await runBench(t, '--only', 'reposts,import')
  for (const scenario of ['reposts', 'import']) {
    const { measured } = await resultIn(folder, scenario)
    for (const { name, median } of measured) assert.equal(median.failed, 0, name)
    assert(measured.length >= 2)
  }
})

test('a small run imports a Slack zip and NDJSON by the command', AGAIN, async (t) => {
  const { folder } = await runBench(t, '--only', 'import-command')
  const { measured, floors } = await resultIn(folder, 'import-command')
  assert.deepEqual(
    measured.map(({ name }: { name: string }) => name),
    ['endpoint', 'ndjson', 'slack', 'dry run'],
  )
  assert.equal(floors.length, 3)
})

test('a small run measures this code against another checkout of it', AGAIN, async (t) => {
  const checkout = fileURLToPath(import.meta.resolve('../..'))
  const { folder } = await runBench(t, '--against', checkout, '--only', 'against-appends')
  const { measured, floors } = await resultIn(folder, 'against-appends')
  for (const { name, median } of measured)
    assert.equal(median.failed, 0, `${name} left requests unanswered`)
  assert.equal(floors.length, 1)
})

test('a misspelt scenario is an error that lists all scenarios', async (t) => {
  await assert.rejects(runBench(t, '--only', 'callers-65'), {
    code: 2,
    stderr: /Unknown scenario callers-65; the scenarios are callers-64, /,
  })
})
