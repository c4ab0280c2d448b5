import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { processSettings } from '@sluice/process'
import { runtimeEnv } from '@sluice/test-support'
import { test } from 'vitest'
import { freePort } from '../servers/machine.ts'
import { choosePorts } from './apps.ts'
import { startCommand } from './start-command.ts'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))

test('the faults in the settings of all processes are reported at once, before anything is started', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-settings-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const faulty = {
    PORT: '0',
    REDIS_URL: 'http://a',
    LOG_LEVEL: 'loud',
    MAX_QUOTES: '0',
    CONCURRENCY: 'many',
  }
  const env = { ...runtimeEnv(), HOME: process.env.HOME, ...faulty }
  const child = spawn(process.execPath, [main], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  assert.equal(code, 1)
  assert.equal(output, '')
  assert.deepEqual(errors.trim().split('\n').sort(), [
    '  CONCURRENCY must be a whole number from 1 to 1000, not "many"',
    '  LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not "loud"',
    '  MAX_QUOTES must be a whole number from 1 to 1000000, not "0"',
    '  PORT must be a whole number from 1 to 65535, not "0"',
    `  REDIS_URL must be ${processSettings.redisUrl.bound}`,
    'error: The settings in the environment cannot be used:',
  ])
  assert.deepEqual(await readdir(folder), [])
})

test('the dashboard takes no port that another start has chosen and does not listen on yet', async () => {
  const first = await choosePorts(await freePort(), '127.0.0.1', 1)
  const second = await choosePorts(await freePort(), '127.0.0.1', 1)
  assert.notEqual(first.dashboard, second.dashboard)
})

test('as many workers as asked for get a port each, and too many are refused', async () => {
  const { workerAdmin } = await choosePorts(await freePort(), '127.0.0.1', 3)
  assert.equal(new Set(workerAdmin).size, 3)
  const fail = () => assert.fail('nothing starts')
  const command = startCommand({
    folder: '',
    env: {},
    connectStore: fail,
    createLink: fail,
    checkRedis: fail,
    say: fail,
  }).exitOverride()
  command.configureOutput({ writeErr: () => {} })
  await assert.rejects(
    command.parseAsync(['--workers', '65'], { from: 'user' }),
    /At most 64 workers/,
  )
})
