import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { requiredUrl } from '@sluice/test-support'
import { it } from 'vitest'
import { createGroupCommit } from '../group-commit.ts'
import { connectRetrying } from './redis-connections.ts'
import { isUnavailable, observeCommands, openScript, scriptJson } from './script.ts'

function gated() {
  const groups: number[][] = []
  const gates: (() => void)[] = []
  const run = async (items: number[]) => {
    groups.push(items)
    await new Promise<void>((resolve) => gates.push(resolve))
    return items.map((item) => item * 10)
  }
  return { groups, run, open: () => gates.shift()?.() }
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

it('runs a single item at once, and gathers the items that arrive while it runs', async () => {
  const { groups, run, open } = gated()
  const commit = createGroupCommit(run)
  const first = commit(1)
  await nextTurn()
  const rest = [commit(2), commit(3)]
  await nextTurn()
  assert.deepEqual(groups, [[1]])
  open()
  assert.equal(await first, 10)
  await nextTurn()
  assert.deepEqual(groups, [[1], [2, 3]])
  open()
  assert.deepEqual(await Promise.all(rest), [20, 30])
})

it('runs the items that are chosen, and leaves the others in their order', async () => {
  const groups: number[][] = []
  const commit = createGroupCommit(
    async (items: number[]) => {
      groups.push(items)
      return items
    },
    (gathered) => (gathered.includes(9) ? [gathered.indexOf(9)] : [0, 1]),
  )
  await Promise.all([1, 2, 9, 3, 9].map(commit))
  assert.deepEqual(groups, [[9], [9], [1, 2], [3]])
})

it('fails only the items of the run that failed', async () => {
  const commit = createGroupCommit(
    async (items: number[]) => {
      if (items.includes(2)) throw new Error('two')
      return items
    },
    () => [0],
  )
  const settled = await Promise.allSettled([1, 2, 3].map(commit))
  assert.deepEqual(
    settled.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
})

it('fails an item that its run gave no result for', async () => {
  const commit = createGroupCommit(async (items: number[]) => items.slice(1))
  await assert.rejects(commit(1), /no result/)
})

it('reports scripts by their names, and the codes of errors, each once although it waited for Redis', async (t) => {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const reported: string[][] = []
  observeCommands(redis, {
    times: {
      observe({ command }, seconds) {
        assert(seconds > 0 && seconds < 10)
        reported.push([command])
      },
    },
    errors: { inc: ({ code }) => reported.at(-1)?.push(code) },
    onRefused: (script) => reported.at(-1)?.push(`refused ${script}`),
  })
  const read = openScript(redis, new URL('./layout.lua', import.meta.url))
  const early = read('{a queue of its own}:', 1)
  assert.notEqual(redis.status, 'ready')
  await once(redis, 'ready')
  await early
  await read('{a queue of its own}:', 1)
  await redis.rpush('{a wrong queue}:layout', 'a list')
  await assert.rejects(read('{a wrong queue}:', 1), /WRONGTYPE/)
  await redis.del('{a wrong queue}:layout')
  assert.deepEqual(reported, [['layout'], ['layout'], ['layout', 'WRONGTYPE', 'refused layout']])
})

it('writes JSON that Redis can parse: half a surrogate pair becomes U+FFFD, and nothing else changes', async (t) => {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const same = [
    '\\ud800',
    '\\\\udfff',
    '\u{1f600}',
    '\ud7ff\ue000',
    '"\n\0\u007f',
    { a: [1, null] },
  ]
  assert.equal(scriptJson(same), JSON.stringify(same))
  const halves = ['\ud800', 'a\udfff', '\\\udbff', '\\\\\udc00', '\ude00\ud83d']
  const texts = halves.map((text) => text.toWellFormed())
  assert.deepEqual(await redis.eval('return cjson.decode(ARGV[1])', 0, scriptJson(halves)), texts)
})

it.for([
  [
    'ReplyError',
    'WRONGTYPE Operation against a key holding the wrong kind of value script: f, on @user_script:1.',
    false,
  ],
  [
    'ReplyError',
    'ERR Error running script (call to f): @user_script:1: WRONGTYPE Operation against a key',
    false,
  ],
  [
    'ReplyError',
    'ERR Error running script (call to f): @user_script:1: -MISCONF Redis is configured to save',
    true,
  ],
  ['ReplyError', 'NOREPLICAS Not enough good replicas to write.', true],
  ['TypeError', 'x is not a function', false],
  ['Error', 'Connection is closed.', true],
] as const)('%s %s: Redis is unavailable: %s', ([name, message, expected]) => {
  assert.equal(isUnavailable(Object.assign(new Error(message), { name })), expected)
})

it('asks for the rights of a command with as many arguments as Redis 8 asks for', async (t) => {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const strict = `local needed = { TIME = 0, GET = 1, XADD = 4, RPOP = 1 }
    local function check(command, ...)
      if select('#', ...) ~= needed[command] then error('ERR Wrong number of args') end
      return command ~= 'RPOP'
    end
    local redis = setmetatable({ acl_check_cmd = check }, { __index = redis })\n`
  const lua = strict + readFileSync(new URL('./refusal.lua', import.meta.url), 'utf8')
  const ask = (...commands: string[]) => redis.eval(lua, 1, 'test:refusal:', ...commands)
  assert.deepEqual(await ask('TIME', 'GET', 'XADD'), ['', ''])
  assert.deepEqual(await ask('GET', 'RPOP'), ['', 'NOPERM its user may not send RPOP'])
})
