import assert from 'node:assert/strict'
import { mkdtemp, readdir, readlink, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'vitest'
import { importHead } from '../e2e/support/open-wire.ts'
import { openSockets } from '../support/edge-support.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024

test('unread answers of all imports share one bound, and a killed API leaves no file behind', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-spill-'))
  t.onTestFinished(() => rm(folder, { recursive: true }))
  const settings = { MAX_SPILL_BYTES: String(32 * MIB), TMPDIR: folder }
  const { url, key, api } = await startSluice(t, { workers: 0, settings })
  const type = { 'content-type': 'application/x-ndjson', 'transfer-encoding': 'chunked' }
  const lines = '[]\n'.repeat(20_000)
  let cut = 0
  for (const socket of await openSockets(t, url, 6)) {
    socket.on('close', () => cut++)
    const send = () =>
      void socket.write(`${lines.length.toString(16)}\r\n${lines}\r\n`, (error) => error ?? send())
    socket.write(importHead({ 'x-api-key': key, ...type }), send)
  }
  let most = 0
  await until('some of them are cut', async () => {
    most = Math.max(most, await spilledBytes(api.pid))
    return cut > 2
  })
  assert.ok(most > MIB && most <= 16 * MIB, `${most / MIB} MiB in files`)
  api.signal('SIGKILL')
  await api.ended
  assert.deepEqual(await readdir(folder), [])
})

/** The size of the files that a process keeps open without a name. */
async function spilledBytes(pid: number): Promise<number> {
  const folder = `/proc/${pid}/fd`
  const sizes = (await readdir(folder)).map(async (fd) => {
    const path = join(folder, fd)
    return /sluice-import-.*\(deleted\)/.test(await readlink(path)) ? (await stat(path)).size : 0
  })
  const settled = await Promise.allSettled(sizes)
  return settled.reduce(
    (sum, result) => sum + (result.status === 'fulfilled' ? result.value : 0),
    0,
  )
}
