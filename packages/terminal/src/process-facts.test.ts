import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'vitest'
import { processFacts } from './process-facts.ts'

test('a live process has a parent, a command and bytes in RAM', async (t) => {
  const child = spawn('sleep', ['1000'])
  t.onTestFinished(() => void child.kill())
  await once(child, 'spawn')
  const { parent, command } = (await processFacts(child.pid ?? 0)) ?? {}
  assert.deepEqual({ parent, command }, { parent: process.pid, command: 'sleep 1000' })
  child.kill()
  await once(child, 'exit')
  assert.equal(await processFacts(child.pid ?? 0), undefined)
  // A process that has only just begun holds next to nothing in RAM, so this one is asked.
  const { bytes = 0 } = (await processFacts(process.pid)) ?? {}
  assert.ok(bytes > 10_000_000)
})
