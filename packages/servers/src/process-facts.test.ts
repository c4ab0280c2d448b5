import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'vitest'
import { processFacts } from './machine.ts'

for (const platform of new Set<NodeJS.Platform>(['darwin', process.platform])) {
  test(`a live process has a parent and a command, on ${platform}`, async () => {
    const child = spawn('sleep', ['1000'])
    await once(child, 'spawn')
    assert.deepEqual(await processFacts(child.pid ?? 0, platform), { parent: process.pid, command: 'sleep 1000' })
    child.kill()
    await once(child, 'exit')
    assert.equal(await processFacts(child.pid ?? 0, platform), undefined)
  })
}
