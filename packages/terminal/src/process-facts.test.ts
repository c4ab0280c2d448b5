import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'vitest'
import { processFacts } from './process-facts.ts'

// A Mac has `ps`. A slim Linux may have none.
const hasPs = spawnSync('ps').error === undefined
for (const platform of new Set<NodeJS.Platform>(['darwin', process.platform])) {
  const canRun = platform === 'linux' || hasPs
  test.runIf(canRun)(
    `a live process has a parent, a command and bytes in RAM, on ${platform}`,
    async (t) => {
      const child = spawn('sleep', ['1000'])
      t.onTestFinished(() => void child.kill())
      await once(child, 'spawn')
      const { parent, command } = (await processFacts(child.pid ?? 0, platform)) ?? {}
      assert.deepEqual({ parent, command }, { parent: process.pid, command: 'sleep 1000' })
      child.kill()
      await once(child, 'exit')
      assert.equal(await processFacts(child.pid ?? 0, platform), undefined)
      // A process that has only just begun holds next to nothing in RAM, so this one is asked.
      const { bytes = 0 } = (await processFacts(process.pid, platform)) ?? {}
      assert.ok(bytes > 10_000_000)
    },
  )
}
