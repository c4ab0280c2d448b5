import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { it, type TestContext } from 'vitest'
import { ownStore } from './job/lanes.ts'

const BOUNDED = await readFile(new URL('./bounded.lua', import.meta.url), 'utf8')

/** Makes a function that runs code with the functions of bounded.lua, on a store of its own. */
function setUp(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const store = `{${testQueueName()}}:store`
  return (code: string) =>
    redis.eval(`${BOUNDED}\nlocal store, evicted = KEYS[1], {}\n${code}`, 1, store)
}

const NOTE = 'function(member) evicted[#evicted + 1] = member end'

it('evicts the oldest members beyond the bound, and asks for another call only if more must go', async (t) => {
  const run = setUp(t)
  await run("for at = 1, 6 do keep(store, 'm' .. at, at, 10) end")
  const evict = (bound: number, most: number) =>
    run(`local more = evict(store, ${bound}, 0, ${most}, ${NOTE}) return {more, evicted}`)
  assert.deepEqual(await evict(30, 2), [1, ['m1', 'm2']])
  assert.deepEqual(await evict(20, 2), [0, ['m3', 'm4']])
  assert.deepEqual(await evict(20, 2), [0, []])
  assert.deepEqual(await evict(0, 2), [0, ['m5', 'm6']])
})

it('does the same for the tenant with the most bytes', async (t) => {
  const run = setUp(t)
  await run(
    "for at = 1, 4 do keepOf(store, 'loud', 'm' .. at, at, 10) end keepOf(store, 'quiet', 'q', 0, 10)",
  )
  const evict = (bound: number, most: number) =>
    run(`local more = evictOfTenants(store, ${bound}, -1, ${most}, ${NOTE}) return {more, evicted}`)
  assert.deepEqual(await evict(20, 2), [1, ['m1', 'm2']])
  assert.deepEqual(await evict(20, 1), [0, ['m3']])
})

it('names the store of each tenant as TypeScript does, and no two alike', async (t) => {
  const run = setUp(t)
  const tenants = [
    'zed',
    'zed:age',
    'zed%3Aage',
    'zed%253Aage',
    'of:zed',
    ':',
    '%',
    '%s %1 %%',
    'é',
    '',
  ]
  const named = await run(
    `return {${tenants.map((name) => `ownStore('s', ${JSON.stringify(name)})`)}}`,
  )
  assert.deepEqual(
    named,
    tenants.map((name) => ownStore('s', name)),
  )
  assert.equal(ownStore('s', 'zed-1.é'), 's:of:zed-1.é')
  assert.equal(new Set(tenants.map((name) => ownStore('s', name))).size, tenants.length)
})
