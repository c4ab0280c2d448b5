// Tests that one server at a time serves its data, and that none can fill the memory of the
// machine.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { processFacts } from '@sluice/terminal'
import { test } from 'vitest'
import { launchProcess } from './launch-process.ts'
import { UnusableData } from './provider.ts'
import { temporaryFolder } from './servers.test-support.ts'
import { boundMemory, endLeftover, forgetOwner, recordOwner, startEngine } from './start-engine.ts'

const orphanMaker = `
  const child = require('node:child_process').spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })
  child.unref()
  console.log(child.pid)
`

test('a server whose parent died is ended before its data is served again', async (t) => {
  const folder = await temporaryFolder(t)
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', orphanMaker])
  const orphan = Number(stdout)
  await recordOwner(folder, orphan, '/usr/bin/sleep')
  await endLeftover(folder)
  assert.equal(await processFacts(orphan), undefined)
})

test('a server whose parent lives is left alone: its data is in use', async (t) => {
  const folder = await temporaryFolder(t)
  const server = spawn('sleep', ['1000'], { detached: true })
  t.onTestFinished(() => void server.kill())
  await once(server, 'spawn')
  await recordOwner(folder, server.pid ?? 0, 'sleep')
  await assert.rejects(endLeftover(folder), UnusableData)
  assert.equal(server.signalCode, null)
})

test('another program that has the process id by now is left alone', async (t) => {
  const folder = await temporaryFolder(t)
  const other = spawn('sleep', ['1000'], { detached: true })
  t.onTestFinished(() => void other.kill())
  await once(other, 'spawn')
  await recordOwner(folder, other.pid ?? 0, '/opt/valkey-server')
  await endLeftover(folder)
  assert.ok(await processFacts(other.pid ?? 0))
})

test('a folder without a server is free', async (t) => {
  const folder = await temporaryFolder(t)
  await endLeftover(folder)
  await recordOwner(folder, process.pid, 'node')
  await forgetOwner(folder)
  await endLeftover(folder)
})

const graceMs = 5_000
const MIB = 1024 * 1024

/** Uses more and more memory until it is stopped. */
const greedy = `const kept = []; setInterval(() => kept.push(Buffer.alloc(${10 * MIB}, 1)), 20)`

test('a server that exceeds its memory is stopped, and the reason names both sizes', async (t) => {
  const folder = await temporaryFolder(t)
  const engine = {
    title: 'a greedy server',
    folder: 'greedy',
    maxBytes: 200 * MIB,
    command: () => ({ command: process.execPath, args: ['-e', greedy] }),
    isReady: async () => true,
  }
  const server = await startEngine(
    engine,
    { folder, port: 1, durable: false },
    AbortSignal.timeout(10_000),
  )
  t.onTestFinished(() => server.stop())
  const [, used = '', bound] =
    /used (\d+) MiB of memory and may use (\d+) MiB$/.exec(await server.died) ?? []
  assert.equal(bound, '200')
  assert.ok(Number(used) > 200 && Number(used) < 2_000, `it used ${used} MiB`)
})

test('a server within its memory goes on, and its own end is reported as it was', async (t) => {
  const log = join(await temporaryFolder(t), 'log')
  const launched = await launchProcess({ command: 'sleep', args: ['1000'], log, graceMs })
  t.onTestFinished(() => launched.stop())
  const died = boundMemory(launched, launched.died, 200 * MIB)
  assert.ok(Number((await processFacts(launched.pid))?.bytes) > 0)
  process.kill(launched.pid, 'SIGKILL')
  assert.equal(await died, 'killed by SIGKILL')
})
