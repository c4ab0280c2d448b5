import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { runCommand } from '@sluice/cli/test-support'
import { beforeSuite, runtimeEnv } from '@sluice/test-support'
import { describe, type TestContext, test } from 'vitest'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { createCaller } from './support/caller.ts'
import { storedIn } from './support/read-reply.ts'

const SLUICE = fileURLToPath(import.meta.resolve('../../sluice'))

async function someFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-commands-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function run(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  cwd = process.cwd(),
) {
  const child = spawn(program, args, {
    cwd,
    env: { ...runtimeEnv(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ])
  return { stdout, stderr, code }
}

describe('./sluice', () => {
  test('uses the Node of the project, not the one on the PATH, also through a link, and prints nothing else', async (t) => {
    const folder = await someFolder(t)
    await writeFile(join(folder, 'node'), '#!/bin/sh\necho an older Node; exit 9\n')
    await chmod(join(folder, 'node'), 0o755)
    await symlink(SLUICE, join(folder, 'linked'))
    const PATH = `${folder}:${process.env.PATH}`
    const { stdout, stderr, code } = await run(join(folder, 'linked'), ['--help'], { PATH })
    assert.match(stdout, /^Usage: sluice /)
    assert.deepEqual([stderr, code], ['', 0])
  })

  test('called from another folder, finds the Sluice of its own folder, unless one was started there', async (t) => {
    const folder = await someFolder(t)
    const named = async () =>
      /No Sluice runs in ([^ ]*)\. Run/.exec((await run(SLUICE, ['list'], {}, folder)).stderr)?.[1]
    // Undefined if a Sluice happens to run in the repository's folder.
    assert.ok([dirname(SLUICE), undefined].includes(await named()))
    await mkdir(join(folder, '.sluice'))
    assert.equal(await named(), folder)
  })
})

describe('stored threads are shown', () => {
  let sluice: TestSluice
  beforeSuite(async (t) => {
    sluice = await startSluice(t, { settings: { LIST_SOURCES: 'on' } })
    const caller = createCaller(sluice)
    const quotes = [
      {
        externalId: 'm1',
        speaker: 'Ada',
        text: 'Could it\nbe dark?',
        createdAt: '2024-05-01T09:30',
      },
      { externalId: 'm2', text: 'Yes\u001b[2J', createdAt: '2024-05-01T09:31', replyingTo: 'm1' },
    ]
    const thread = { service: 'slack', title: 'Dark mode, please', quotes, createdAt: '2024-05-01' }
    for (const externalId of ['thread-1', 'thread-2'])
      storedIn(await caller.post({ ...thread, externalId }))
    storedIn(
      await caller.post({
        service: 'email',
        externalId: '<1@a>',
        title: 'x'.repeat(100),
        quotes: [],
      }),
    )
  })
  const deps = () => ({ folder: tmpdir(), env: { SLUICE_API_KEY: sluice.key } })
  const list = (...args: string[]) => runCommand(deps(), 'list', [...args, '--url', sluice.url])
  const get = (...args: string[]) => runCommand(deps(), 'get', [...args, '--url', sluice.url])

  test('`list` prints a table, newest first, filtered and cut', async () => {
    const env = { SLUICE_API_KEY: sluice.key }
    const { stdout, stderr, code } = await run(SLUICE, ['list', '--url', sluice.url], env)
    const [head = '', ...rows] = stdout.trimEnd().split('\n')
    assert.match(head, /^ACCEPTED +SERVICE +QUOTES +WORDS +EXTERNAL ID +TITLE$/)
    assert.deepEqual([rows.length, stderr, code], [3, '', 0])
    assert.match(rows[0] ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\dZ +email +0 +0 +<1@a> +x{59}…$/)
    assert.match(rows[1] ?? '', / slack +2 +\d+ +thread-2 +Dark mode, please$/)
    assert.equal((await list('--since', '2999-01-01')).stdout, 'No such thread is stored.\n')
    const cut = await list('--service', 'slack', '--limit', '1')
    assert.match(cut.stdout, /thread-2.*\nOlder ones are left out: --limit 10 shows more\.\n$/)
    const json = JSON.parse((await list('--since', '1h', '--json')).stdout)
    assert.deepEqual(
      json.map(({ externalId }: { externalId: string }) => externalId),
      ['<1@a>', 'thread-2', 'thread-1'],
    )
  })

  test('`get` prints a thread as people read it, and no text steers the terminal', async () => {
    const { stdout, code } = await get('slack', 'thread-1')
    const { source, quotes } = JSON.parse((await get('slack', 'thread-1', '--json')).stdout)
    const expected = [
      'Dark mode, please',
      'slack thread-1: 2024-05-01T00:00Z, 2 messages, 6 words',
      `Id: ${source.id}`,
      ...['', 'Ada, 2024-05-01T09:30Z', '  Could it', '  be dark?'],
      ...['', 'Unknown, 2024-05-01T09:31Z, to Ada', '  Yes\ufffd[2J', ''],
    ]
    assert.deepEqual([stdout.split('\n'), code], [expected, 0])
    assert.deepEqual([source.title, quotes.length], ['Dark mode, please', 2])
    const short = {
      service: 'custom',
      externalId: 'short',
      title: 'Hi',
      quotes: [{ text: 'Hello' }],
    }
    storedIn(await createCaller(sluice).post({ ...short, createdAt: '2024-05-01' }))
    assert.match((await get('custom', 'short')).stdout, /: 2024-05-01T00:00Z, 1 message, 1 word\n/)
  })

  test('what cannot be shown is an error that says why', async () => {
    const missing = await get('slack', 'nothing')
    assert.deepEqual(
      [missing.stderr, missing.code],
      ['error: No thread nothing of slack is stored.\n', 1],
    )
    const wrong = await list('--service', 'slak')
    assert.match(wrong.stderr, /^error: .*service must be one of .* Did you mean slack\?\n$/)
    assert.equal(wrong.code, 1)
  })
})
