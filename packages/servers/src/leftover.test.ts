import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { test } from 'vitest'
import { DataInUse, endLeftover, forgetOwner, recordOwner } from './leftover.ts'
import { processFacts } from './machine.ts'
import { temporaryFolder } from './temporary-folder.test-support.ts'

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
  await assert.rejects(endLeftover(folder), DataInUse)
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
