// Pastes the commands of README.md and docs/start.md into a shell, in a fresh clone.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort } from '@sluice/local'
import { runtimeEnv } from '@sluice/test-support'
import { test } from 'vitest'
import { until } from '../support/until.ts'

/** To install and start takes minutes on a busy machine. */
const START_MS = 300_000
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** `test` is this run, and Docker is not everywhere: test/deploy/compose.test.ts is about it. */
const ELSEWHERE = /pnpm@12 test|^nohup |^docker /m

test('every command works as it is pasted, in their order', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-readme-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await promisify(execFile)('git', ['clone', '--quiet', ROOT, folder])
  const [readme, start] = await Promise.all(
    ['README.md', 'docs/start.md'].map((path) => readFile(join(folder, path), 'utf8')),
  )
  const pages = `${readme}${start}`
  const blocks = (language: string) =>
    Array.from(
      pages.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 'gs')),
      ([, block = '']) => block,
    )
  const inline = (command: RegExp) =>
    command.exec(pages)?.[0] ?? assert.fail(`No page has ${command}`)

  const port = await freePort()
  // As people have it: with the programs of this repository before npx, npx hangs.
  const PATH = process.env.PATH?.split(delimiter)
    .filter((place) => !place.includes('node_modules'))
    .join(delimiter)
  const env = { ...runtimeEnv(), PATH, HOME: homedir(), PORT: String(port) }
  const bash = async (script: string) => {
    const pasted = script.replaceAll('127.0.0.1:3000', `127.0.0.1:${port}`)
    return (
      await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', pasted], { cwd: folder, env })
    ).stdout
  }
  const readLog = () => readFile(join(folder, 'sluice.log'), 'utf8').catch(() => '')
  const started = spawn('bash', ['-c', `${inline(/nohup npx .* &$/m)} wait`], {
    cwd: folder,
    env,
    detached: true,
  })
  const ended = once(started, 'close')
  t.onTestFinished(async () => {
    if (started.exitCode === null) process.kill(-Number(started.pid), 'SIGKILL')
    await ended
  })
  await Promise.race([
    until('it is ready', async () => /^Dashboard: /m.test(await readLog()), START_MS),
    ended,
  ])
  const stop = await bash(inline(/grep Stop: sluice\.log/)).catch(async () =>
    assert.fail(await readLog()),
  )

  const output = await bash(
    blocks('sh')
      .filter((block) => !ELSEWHERE.test(block))
      .join('\n'),
  )
  assert.equal(output.match(/"outcome": ?"created","/g)?.length, 4, output)
  assert.match(output, /Done: .*\n[\s\S]*"received": ?3, ?"created": ?3/m)
  assert.match(output, /^Dark mode, please\nslack thread-1: .*\nId: \S+$/m)
  const deleted = await bash(`${inline(/\.\/sluice delete slack thread-1/)} --yes`)
  assert.match(deleted, /deleted/i)
  await assert.rejects(bash('./sluice get slack thread-1'), /No thread thread-1 of slack is stored/)
  await bash(stop.replace(/.*, or /, ''))
  await ended
  assert.match(await readLog(), /^Stopping /m)
})
