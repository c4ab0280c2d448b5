import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { runtimeEnv } from '@sluice/test-support'
import { test } from 'vitest'

const VITEST = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))

const CONFIG = `
import { CountReporter } from '${import.meta.resolve('./count-reporter.ts')}'
export default { test: { globals: true, reporters: ['verbose', new CountReporter(undefined, 0)] } }`

const TESTS = `
test('one passes', () => {})
test('one fails', () => { throw new Error('no') })
test('one lasts', async () => {
  await new Promise((resolve) => setTimeout(resolve, 60_000))
}, 60_000)`

test('an interrupted run says so, and counts the tests that ran', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-counts-'))
  t.onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'vitest.config.mjs'), CONFIG)
  await writeFile(join(folder, 'some.test.mjs'), TESTS)
  const run = spawn(process.execPath, [VITEST, 'run', '--root', folder], { env: runtimeEnv() })
  t.onTestFinished(() => void run.kill('SIGKILL'))
  const lines: string[] = []
  createInterface({ input: run.stdout }).on('line', (line) => {
    lines.push(line)
    if (line.includes('one fails')) run.kill('SIGINT')
  })
  const [code] = await once(run, 'close')
  assert.notEqual(code, 0)
  assert.deepEqual(
    lines.filter((line) => /^The run was|^\d+ passed/.test(line)),
    ['The run was interrupted: the next line counts the tests that ran.', '1 passed, 1 failed'],
  )
})
