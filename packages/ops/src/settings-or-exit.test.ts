import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'vitest'

test('a process with faulty settings prints the faults, without a stack, and exits 1', async () => {
  const program = `
    import { processSettings, settingsOrExit } from ${JSON.stringify(new URL('index.ts', import.meta.url).href)}
    settingsOrExit(processSettings)`
  const env = { ADMIN_PORT: 'x', REDIS_URL: 'hunter2' }
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  assert.equal(code, 1)
  assert.equal(
    errors,
    'The settings in the environment cannot be used:\n' +
      '  REDIS_URL must be a URL that begins with redis:// or rediss://\n' +
      '  ADMIN_PORT must be a whole number from 0 to 65535, not "x"\n',
  )
})
