// Tests that a program can fill neither the memory nor the disk of the machine.
import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'vitest'
import { boundMemory } from './bound-memory.ts'
import { launchProcess } from './launch-process.ts'
import { residentBytes } from './machine.ts'
import { startEngine } from './start-engine.ts'
import { temporaryFolder } from './temporary-folder.test-support.ts'

const graceMs = 5_000
const MIB = 1024 * 1024

/** Uses more and more memory until it is stopped. */
const greedy = `const kept = []; setInterval(() => kept.push(Buffer.alloc(${10 * MIB}, 1)), 5)`

test('a server that exceeds its memory is stopped, and the reason names both sizes', async (t) => {
  const folder = await temporaryFolder(t)
  const engine = {
    title: 'a greedy server',
    folder: 'greedy',
    maxBytes: 200 * MIB,
    command: () => ({ command: process.execPath, args: ['-e', greedy] }),
    isReady: async () => true,
  }
  const server = await startEngine(engine, { folder, port: 1, durable: false }, AbortSignal.timeout(10_000))
  t.onTestFinished(() => server.stop())
  const [, used = '', bound] = /used (\d+) MiB of memory and may use (\d+) MiB$/.exec(await server.died) ?? []
  assert.equal(bound, '200')
  assert.ok(Number(used) > 200 && Number(used) < 2_000, `it used ${used} MiB`)
})

test('a server within its memory goes on, and its own end is reported as it was', async (t) => {
  const log = join(await temporaryFolder(t), 'log')
  const launched = await launchProcess({ command: 'sleep', args: ['1000'], log, graceMs })
  t.onTestFinished(() => launched.stop())
  const died = boundMemory(launched, launched.died, 200 * MIB)
  assert.ok(Number(await residentBytes(launched.pid)) > 0)
  process.kill(launched.pid, 'SIGKILL')
  assert.equal(await died, 'killed by SIGKILL')
})

test('a log begins again when it has reached its bound, and one earlier part stays', async (t) => {
  const log = join(await temporaryFolder(t), 'log')
  const maxLogBytes = 100_000
  // Writes 200 kB, waits for the log to begin again, and so on.
  const chatty = `
    const { statSync, writeSync } = require('node:fs')
    const line = 'x'.repeat(999) + '\\n'
    setInterval(() => { if (statSync(${JSON.stringify(log)}).size <= ${maxLogBytes}) for (let i = 0; i < 200; i++) writeSync(1, line) }, 20)`
  const launched = await launchProcess({ command: process.execPath, args: ['-e', chatty], log, maxLogBytes, graceMs })
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
