import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createSessions } from '@sluice/credentials/sessions'
import { connectFailFast } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { RedisUnavailableError } from '@sluice/terminal'
import { requiredUrl, runtimeEnv, testQueueName } from '@sluice/test-support'
import { test } from 'vitest'
import { loginCommand } from './login-command.ts'

test('if nothing runs in the folder and no Redis is named, it says what to do, as other commands do', async () => {
  const unavailable = new RedisUnavailableError('Redis at 127.0.0.1:6379 cannot be reached')
  const [createLink, print] = [() => Promise.reject(unavailable), () => {}]
  const login = (env: { REDIS_URL?: string }) =>
    loginCommand({ folder: '/absent', env, createLink, print }).parseAsync([], { from: 'user' })
  await assert.rejects(login({}), {
    message:
      /^No Sluice runs in \/absent\. Run `npx -y pnpm@12 start` there, or name .* REDIS_URL\.$/,
  })
  await assert.rejects(login({ REDIS_URL: 'redis://10.0.0.5' }), unavailable)
})

const main = fileURLToPath(new URL('../main.ts', import.meta.url))

test('prints a link that logs in once, with Redis alone, and says if Redis is unavailable', async (t) => {
  const cwd = await mkdtemp(join(tmpdir(), 'sluice-login-'))
  t.onTestFinished(() => rm(cwd, { recursive: true }))
  const QUEUE = testQueueName()
  const login = (env: Record<string, string>, ...args: string[]) =>
    promisify(execFile)(process.execPath, [main, 'login', ...args], {
      cwd,
      env: { ...runtimeEnv(), QUEUE, ...env },
    })
  const env = { REDIS_URL: requiredUrl('REDIS_URL'), DASHBOARD_URL: 'https://board.example/' }
  const [{ stdout }] = await Promise.all([
    login(env, '--role', 'viewer'),
    assert.rejects(
      login({ ...env, REDIS_URL: 'redis://127.0.0.1:1' }),
      /error: Redis at 127\.0\.0\.1:1 cannot be reached/,
    ),
    assert.rejects(login(env, '--role', 'importer'), /Allowed choices are operator, viewer/),
  ])
  const token = /^https:\/\/board\.example\/login\?link=([\w-]{43})\n$/.exec(stdout)?.[1] ?? ''
  const redis = connectFailFast({ redisUrl: env.REDIS_URL, queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const by = `${userInfo().username}@${hostname()}`
  assert.deepEqual(await createSessions(redis, queueKeys(QUEUE)).useLink(token), {
    role: 'viewer',
    by,
  })
})
