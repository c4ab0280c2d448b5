import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { beforeSuite } from '@sluice/test-support'
import { describe, type TestContext, test } from 'vitest'
import { startSluice, type TestSluice } from '../start-sluice.ts'
import { someThread } from './support/some-thread.ts'

const MAIN = fileURLToPath(import.meta.resolve('../../apps/cli/src/main.ts'))

async function someFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-import-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** `sluice import` as a user runs it, with the key of a Sluice. */
function runImport(t: TestContext, { url, key }: Pick<TestSluice, 'url' | 'key'>, args: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, 'import', '--url', url, ...args], {
    env: { PATH: process.env.PATH, SLUICE_API_KEY: key },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.onTestFinished(() => void child.kill('SIGKILL'))
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  const ended = output.then(([stdout, stderr, [code, signal]]) => ({ stdout, stderr, code, signal }))
  return { child, ended }
}

/** Runs it to its end. The summary is its last line. */
async function importAll(t: TestContext, sluice: Pick<TestSluice, 'url' | 'key'>, ...args: string[]) {
  const { stdout, stderr, code } = await runImport(t, sluice, ['--json', ...args]).ended
  const last = stdout.trimEnd().split('\n').at(-1) ?? ''
  return { code, stderr, summary: last.startsWith('{') ? JSON.parse(last) : undefined }
}

async function writeThreads(folder: string, name: string, threads: readonly object[]): Promise<string> {
  const file = join(folder, name)
  await writeFile(file, threads.map((thread) => `${JSON.stringify(thread)}\n`).join(''))
  return file
}

describe('sluice import', () => {
  let sluice: TestSluice
  beforeSuite(async (t) => {
    sluice = await startSluice(t, { workers: 2 })
  })

  test('700 threads as NDJSON are stored, and the second import writes nothing', async (t) => {
    const threads = Array.from({ length: 700 }, (_, at) => someThread({ externalId: `n-${at}` }))
    const file = await writeThreads(await someFolder(t), 'threads.ndjson', threads)
    const first = await importAll(t, sluice, file)
    assert.equal(first.code, 0, first.stderr)
    assert.deepEqual(first.summary.threads, { created: 700, updated: 0, unchanged: 0, rejected: 0 })
    assert.equal(await sluice.db.collection('sources').countDocuments({ externalId: /^n-/ }), 700)
    const second = await importAll(t, sluice, file)
    assert.deepEqual(second.summary.threads, { created: 0, updated: 0, unchanged: 700, rejected: 0 })
  })
})
