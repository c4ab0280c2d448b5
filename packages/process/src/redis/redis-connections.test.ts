import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { requiredUrl } from '@sluice/test-support'
import { it } from 'vitest'
import { connectRetrying } from './redis-connections.ts'

for (const [kind, reason] of [
  ['cluster', /^nobody names the primary; asked last: \S+:\d+ \(.*cluster support disabled\)$/],
  [
    'sentinel',
    /^nobody names the primary; asked last: \S+:\d+ \(.*unknown command.*SENTINEL.*\)$/i,
  ],
] as const)
  it(`says why nobody names the primary (${kind})`, async (t) => {
    const redisUrl = requiredUrl('REDIS_URL').replace(
      /^redis:\/\/([^/]*).*/,
      `redis+${kind}://$1/0`,
    )
    const error = await new Promise((resolve) => {
      const redis = connectRetrying({ redisUrl, queue: '' }, resolve)
      t.onTestFinished(() => redis.disconnect())
    })
    assert.match(String(Object(error).message), reason)
  })

it('leaves strings as fast as before ioredis was loaded', async () => {
  const module = new URL('redis-connections.ts', import.meta.url)
  const program = `await import('${module}'); console.log(%HasFastProperties(String.prototype))`
  const flags = ['--allow-natives-syntax', '--input-type=module']
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, '--eval', program])
  assert.equal(stdout, 'true\n')
})
