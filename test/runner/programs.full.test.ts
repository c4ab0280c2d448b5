import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'vitest'

/**
 * Runs the tests of the alerts, which need Prometheus, on a machine whose only program is Node.js.
 */
function runOnBareMachine(t: TestContext, env: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bare-'))
  t.onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  symlinkSync(process.execPath, join(folder, 'node'))
  const vitest = join(import.meta.dirname, '../../node_modules/vitest/vitest.mjs')
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [vitest, 'run', 'test/docs/alerts.test.ts'],
    {
      cwd: join(import.meta.dirname, '../..'),
      env: { PATH: folder, HOME: folder, NO_COLOR: '1', ...env },
      encoding: 'utf8',
    },
  )
  return { status, lines: stdout.trimEnd().split('\n'), all: stdout + stderr }
}

describe('tests on a machine without the servers or a program that they need', () => {
  test('are skipped, and the last lines say for what, how many, and what to install', (t) => {
    const { status, lines, all } = runOnBareMachine(t)
    assert.equal(status, 0, all)
    assert.match(
      lines.at(-3) ?? '',
      /^\d+ test files were skipped without Redis and MongoDB: this machine needs Python 3\.11 to 3\.13 \(no Python/,
    )
    assert.match(
      lines.at(-2) ?? '',
      /^(1 test was|\d+ tests were) skipped without prometheus: apt-get install prometheus$/,
    )
    assert.match(lines.at(-1) ?? '', /^\d+ passed, 0 failed, \d+ skipped$/)
  })

  test('fail where each program is required', (t) => {
    const { status, all } = runOnBareMachine(t, { SLUICE_TEST_PROGRAMS: 'required' })
    assert.equal(status, 1, all)
    assert.match(all, /missing: apt-get install prometheus/)
  })
})
