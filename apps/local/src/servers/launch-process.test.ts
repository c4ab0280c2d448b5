import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { processFacts } from '@sluice/terminal'
import { test } from 'vitest'
import { launchProcess } from './launch-process.ts'
import { temporaryFolder, untilGone } from './servers.test-support.ts'

const graceMs = 20_000
/** Sends a message to its parent once it ignores SIGTERM. */
const deaf = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); process.send('deaf')`

test('a program that ends by itself reports its end, and its output is in its log', async (t) => {
  const log = join(await temporaryFolder(t), 'logs', 'one.log')
  const launched = await launchProcess({
    command: 'sh',
    args: ['-c', 'echo hello; exit 3'],
    log,
    graceMs,
  })
  assert.equal(await launched.died, 'exit code 3')
  assert.equal(await readFile(log, 'utf8'), 'hello\n')
  await launched.stop()
})

test('a program that does not exist is an error at once', async (t) => {
  const log = join(await temporaryFolder(t), 'log')
  await assert.rejects(launchProcess({ command: '/nowhere/server', args: [], log, graceMs }), {
    code: 'ENOENT',
  })
})

test('a stop sends SIGTERM, and may be called twice', async (t) => {
  const log = join(await temporaryFolder(t), 'log')
  const launched = await launchProcess({ command: 'sleep', args: ['1000'], log, graceMs })
  await Promise.all([launched.stop(), launched.stop()])
  assert.equal(await launched.died, 'killed by SIGTERM')
  await launched.stop()
})

test('a stop that is in a hurry from the beginning sends no SIGTERM', async (t) => {
  const log = join(await temporaryFolder(t), 'log')
  const launched = await launchProcess({ command: 'sleep', args: ['1000'], log, graceMs })
  await launched.stop(AbortSignal.abort())
  assert.equal(await launched.died, 'killed by SIGKILL')
})

test('a program that ignores SIGTERM is killed after its grace time', async (t) => {
  const log = join(await temporaryFolder(t), 'log')
  const launched = await launchProcess({
    command: process.execPath,
    args: ['-e', deaf],
    log,
    graceMs: 100,
    ipc: true,
  })
  await once(launched.child, 'message')
  await launched.stop()
  assert.equal(await launched.died, 'killed by SIGKILL')
})

test('a hurried stop kills', async (t) => {
  const log = join(await temporaryFolder(t), 'log')
  const launched = await launchProcess({
    command: process.execPath,
    args: ['-e', deaf],
    log,
    graceMs,
    ipc: true,
  })
  await once(launched.child, 'message')
  const hurry = new AbortController()
  const stopped = launched.stop(hurry.signal)
  hurry.abort()
  await stopped
  assert.equal(await launched.died, 'killed by SIGKILL')
})

for (const [what, command, args] of [
  ['a program', 'sleep', ['1000']],
  ['a program and what it started', 'sh', ['-c', 'sleep 1000 & wait']],
  ['a program deaf to SIGTERM', 'sh', ['-c', 'trap "" TERM; sleep 1000; sleep 1000']],
] as const) {
  test(`the SIGKILL of its parent ends ${what}`, async (t) => {
    const log = join(await temporaryFolder(t), 'log')
    const program = new URL('launch-process.program.ts', import.meta.url)
    const parent = fork(program, [log, command, ...args])
    const [pid] = await once(parent, 'message')
    assert.ok(await processFacts(pid))
    parent.kill('SIGKILL')
    await untilGone(pid)
  })
}

test('a log begins again when it has reached its bound, and one earlier part stays', async (t) => {
  const log = join(await temporaryFolder(t), 'log')
  const maxLogBytes = 100_000
  // Writes 200 kB, waits for the log to begin again, and so on.
  const chatty = `
    const { statSync, writeSync } = require('node:fs')
    const line = 'x'.repeat(999) + '\\n'
    setInterval(() => { if (statSync(${JSON.stringify(log)}).size <= ${maxLogBytes}) for (let i = 0; i < 200; i++) writeSync(1, line) }, 20)`
  const launched = await launchProcess({
    command: process.execPath,
    args: ['-e', chatty],
    log,
    maxLogBytes,
    graceMs,
  })
  t.onTestFinished(() => launched.stop())
  let rotations = 0
  let before = 0
  while (rotations < 3) {
    const size = await stat(log).then(({ size }) => size)
    if (size < before) rotations++
    before = size
    assert.ok(size <= 3 * maxLogBytes, `the log has ${size} bytes`)
    await pause(5)
  }
  assert.ok((await stat(`${log}.1`)).size <= 3 * maxLogBytes)
})
