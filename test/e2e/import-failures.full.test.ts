import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { beforeSuite, runtimeEnv } from '@sluice/test-support'
import { describe, type TestContext, test } from 'vitest'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { BUSY_MS } from '../support/until.ts'
import { someThread } from './support/some-thread.ts'

const MAIN = fileURLToPath(import.meta.resolve('../../apps/cli/src/main.ts'))
/** Five, and what a busy machine takes to start a process. */
const SECONDS = 5 + BUSY_MS / 1_000
const WRONG_KEY = `slc_${'0'.repeat(36)}`

/** A comment without its submission: its title is looked up before anything is sent. */
const COMMENT = {
  id: 'k1',
  link_id: 't3_1abc',
  body: 'Loud.',
  author: 'bob',
  created_utc: 1,
  subreddit: 'keyboards',
}
/** An answer to a mail that is missing. */
const MBOX = `From ada Wed May  1 09:30:00 2024
From: ada@example.org
Subject: Re: Split keyboards
Message-ID: <2@example.org>
In-Reply-To: <1@example.org>

Yes.
`
/**
 * The first record is rejected at once, the other one is in flight for as long as no worker runs.
 */
const BAD_AND_GOOD = [someThread({ createdAt: 'yesterday' }), someThread()]
  .map((one) => JSON.stringify(one))
  .join('\n')

interface Case {
  key?: string
  content: string
  args?: (file: string) => string[]
  /** Makes a file fail to be written. */
  prepare?: (file: string) => Promise<unknown>
  problem: RegExp
}

const CASES: Readonly<Record<string, Case>> = {
  'a wrong key for comments without their submissions': {
    key: WRONG_KEY,
    content: JSON.stringify(COMMENT),
    problem: /Check the key/,
  },
  'a wrong key for mails without the mail that they answer': {
    key: WRONG_KEY,
    content: MBOX,
    problem: /Check the key/,
  },
  'a wrong key for threads from a pipe that stays open': {
    key: WRONG_KEY,
    content: JSON.stringify(COMMENT),
    args: () => ['--format', 'reddit', '-'],
    problem: /Check the key/,
  },
  'a file of another format on a pipe that stays open': {
    content: 'x'.repeat(70_000),
    args: () => ['-'],
    problem: /not recognised/,
  },
  'a full disk below the checkpoint, while a batch is in flight': {
    content: BAD_AND_GOOD,
    prepare: (file) => symlink('/dev/full', `${file}.sluice-checkpoint.new`),
    problem: /The disk is full.*--state-dir/,
  },
  'a checkpoint that cannot be written': {
    content: BAD_AND_GOOD,
    prepare: (file) => mkdir(`${file}.sluice-checkpoint.new`),
    problem: /EISDIR/,
  },
  'a file of rejected records that cannot be written': {
    content: BAD_AND_GOOD,
    args: (file) => ['--rejected', join(`${file}.missing`, 'rejected'), file],
    problem: /ENOENT.*rejected/,
  },
  'a temporary folder that does not exist': {
    content: JSON.stringify(COMMENT),
    args: (file) => ['--temp-dir', `${file}.missing`, file],
    problem: /--temp-dir/,
  },
}

async function someFile(t: TestContext, content: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-import-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'input.ndjson')
  await writeFile(file, content)
  return file
}

const justTheFile = (file: string) => [file]

/** No worker runs, so that no batch is answered. */
describe('an import that fails ends with exit code 3 within 5 s, and its summary is its last line', () => {
  let sluice: TestSluice

  beforeSuite(async (t) => {
    sluice = await startSluice(t, { workers: 0 })
  })

  for (const [name, { key, content, args = justTheFile, prepare, problem }] of Object.entries(
    CASES,
  )) {
    test(name, async (t) => {
      const file = await someFile(t, content)
      await prepare?.(file)
      const child = spawn(
        process.execPath,
        [MAIN, 'import', '--json', '--url', sluice.url, ...args(file)],
        {
          env: { ...runtimeEnv(), SLUICE_API_KEY: key ?? sluice.key },
          stdio: ['pipe', 'pipe', 'ignore'],
        },
      )
      t.onTestFinished(() => void child.kill('SIGKILL'))
      child.stdin.on('error', () => {})
      child.stdin.write(content)
      const began = performance.now()
      const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
      const seconds = (performance.now() - began) / 1_000
      const summary = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')
      assert.deepEqual([code, summary.kind, summary.state], [3, 'summary', 'failed'], stdout)
      assert.match(summary.problem, problem)
      // Nothing says that the import can go on from a checkpoint that was never written.
      assert.ok(
        summary.checkpoint === undefined || existsSync(summary.checkpoint),
        summary.checkpoint,
      )
      assert.ok(seconds < SECONDS, `ended after ${seconds} s`)
    })
  }
})
