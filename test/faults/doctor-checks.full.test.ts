import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { hostname } from 'node:os'
import { connectRetrying, type Redis } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { mongoCommands } from '@sluice/store'
import { requiredUrl, testDatabase, testQueueName } from '@sluice/test-support'
import { afterAll, beforeAll, type TestContext, test } from 'vitest'
import { needs } from '../runner/programs.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { runSluice } from '../support/run-sluice.ts'
import { until } from '../support/until.ts'
import { openFailPoint } from './fail-commands.ts'
import { canShiftClock, clockBehind, createStartNode, redisProgram } from './redis-topology.ts'

const program = await redisProgram()
const QUEUE = testQueueName()
const keys = queueKeys(QUEUE)

let redis: PrivateServer
let client: Redis
beforeAll(async () => {
  redis = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
  client = connectRetrying({ redisUrl: redis.url, queue: QUEUE }, () => {})
})
afterAll(() => {
  client.disconnect()
  return redis.end()
})

/**
 * Runs `sluice doctor` on a database of the test's own; `faults` and `notes` are its lines, each
 * with its fix.
 */
async function doctor(settings: Record<string, string> = {}) {
  const all = { REDIS_URL: redis.url, MONGODB_URL: requiredUrl('MONGODB_URL'), QUEUE, ...settings }
  const { stdout, stderr, code } = await runSluice({ settings: all }, 'doctor')
  const lines = stdout.replaceAll(/\n +fix: /g, ' | ').split('\n')
  const of = (state: string) =>
    lines.flatMap((line) => new RegExp(`^  ${state} +(.*)`).exec(line)?.[1] ?? [])
  assert.equal(code, of('FAULT').length > 0 ? 1 : 0, stderr)
  return { faults: of('FAULT'), notes: of('note'), stdout }
}

const titlesOf = (found: readonly string[]) => found.map((line) => /^[\w -]+/.exec(line)?.[0])

test('doctor goes on to MongoDB when Redis closes each connection without an error', async (t) => {
  const server = createServer((socket) =>
    socket.on('error', () => {}).once('data', () => socket.end()),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.onTestFinished(() => void server.close())
  const { faults, stdout } = await doctor({
    REDIS_URL: `redis://127.0.0.1:${Object(server.address()).port}`,
  })
  assert.match(
    faults.join('\n'),
    /^Redis at 127\.0\.0\.1:\d+ cannot be reached: Redis closed the connection/,
  )
  assert.match(stdout, /a majority commits: yes/)
})

test('doctor names the MongoDB that hangs', async (t) => {
  const server = createServer((socket) => socket.on('error', () => {}).resume())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.onTestFinished(() => void server.close())
  const { port } = Object(server.address())
  const hung = {
    REDIS_URL: redis.url,
    MONGODB_URL: `mongodb://127.0.0.1:${port}/sluice?directConnection=true`,
    QUEUE,
  }
  const { stderr, code } = await runSluice({ settings: hung }, 'doctor')
  assert.equal(code, 2)
  assert.match(
    stderr,
    new RegExp(
      `^error: MongoDB at 127\\.0\\.0\\.1:${port} failed: .*\\. The sources are not checked\\. If MongoDB runs, correct MONGODB_URL\\. If not, run this again.*\n$`,
    ),
  )
})

test('doctor and other commands say why MongoDB cannot be reached', async () => {
  // Nothing listens on port 9 (discard).
  const settings = { REDIS_URL: redis.url, MONGODB_URL: 'mongodb://127.0.0.1:9/sluice', QUEUE }
  const [examined, keys] = await Promise.all([
    runSluice({ settings }, 'doctor'),
    runSluice({ settings }, 'keys', 'list'),
  ])
  const refused = 'connect ECONNREFUSED 127.0.0.1:9'
  assert.equal(keys.stderr, `error: MongoDB cannot be reached: ${refused}\n`)
  assert.match(examined.stdout, new RegExp(`Redis has kept its data can’t be asked: .*${refused}`))
  assert(
    examined.stderr.startsWith(`error: MongoDB at 127.0.0.1:9 failed: ${refused}. The sources`),
    examined.stderr,
  )
})

test('doctor names each fault of Redis with the command that fixes it, and exits 1', async () => {
  assert.deepEqual((await doctor()).faults, [])
  await client.set(`${keys.base}layout`, 99)
  const [, dir] = Object(await client.config('GET', 'dir'))
  await client.config('SET', 'appendonly', 'no')
  // Makes snapshots fail, as on a full disk: Redis can't replace a folder that has files.
  await mkdir(`${dir}/dump.rdb/full`, { recursive: true })
  await client.bgsave('SCHEDULE')
  await until('a failed save', async () =>
    /rdb_last_bgsave_status:err/.test(await client.info('persistence')),
  )
  const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
  const unfit = {
    appendfsync: 'no',
    maxmemory: `${Math.round(used * 1.1)}`,
    'maxmemory-policy': 'allkeys-lru',
    'proto-max-bulk-len': '1048576',
    'client-output-buffer-limit': 'normal 400000 0 0',
  }
  for (const [name, value] of Object.entries({ ...unfit, 'min-replicas-to-write': '3' }))
    await client.config('SET', name, value)

  const { faults, stdout } = await doctor({ REDIS_REPLICAS: '1' })
  const config = ['appendfsync', 'proto-max-bulk-len', 'client-output-buffer-limit']
  const titles = [...config, 'memory', 'replicas', 'min-replicas-to-write', 'layout']
  const [eviction, durability, unwritten, size, ...others] = titlesOf(faults)
  assert.match(
    `${eviction}\n${durability}\n${unwritten}\n${size}`,
    /^Redis runs with maxmemory-policy.*\nRedis writes no app.*\nRedis (refuses|could not).*\nRedis may use/,
  )
  assert.deepEqual(others, titles)
  assert.match(stdout, /Free space on its disk, then `redis-cli bgsave schedule`/)

  // As an operator would, the least memory last.
  for (const fault of faults.toReversed()) {
    const [, name = '', value = ''] = /config set ([\w-]+) "?(\w[ \w]*)/.exec(fault) ?? []
    if (name !== '') await client.config('SET', name, value.trim())
  }
  await rm(`${dir}/dump.rdb`, { recursive: true })
  await client.bgsave('SCHEDULE')
  await until('a save', async () =>
    /rdb_last_bgsave_status:ok/.test(await client.info('persistence')),
  )
  const left = titlesOf((await doctor({ REDIS_REPLICAS: '1' })).faults)
  // These two faults need a replica and another release.
  assert.deepEqual(left, ['replicas', 'layout'])
  await client.del(`${keys.base}layout`)
})

test('doctor says what a Redis without CONFIG can’t be asked, and that is no fault', async (t) => {
  const user = ['viewer', 'on', '>secret', '~*', '+@all', '-@admin', '+info']
  await client.call('ACL', 'SETUSER', ...user)
  t.onTestFinished(async () => void (await client.call('ACL', 'DELUSER', 'viewer')))
  const url = Object.assign(new URL(redis.url), { username: 'viewer', password: 'secret' })
  const { notes, stdout } = await doctor({ REDIS_URL: url.href, QUEUE: testQueueName() })
  assert.ok(
    notes.some((text) => /^CONFIG is refused: appendfsync/.test(text)),
    notes.join('\n'),
  )
  assert.doesNotMatch(stdout, /undefined|unknown|NaN|^ {2}ok +(?:appendfsync|min-replicas)/m)
})

test('doctor finds a missing index, and nothing once workers have made it', async (t) => {
  const db = await testDatabase(t)
  const url = Object.assign(new URL(requiredUrl('MONGODB_URL')), {
    pathname: `/${db.databaseName}`,
  })
  const settings = { MONGODB_URL: url.href, QUEUE: testQueueName(), LIST_SOURCES: 'on' }
  await mongoCommands(db, { listsSources: true }).prepare()
  assert.deepEqual((await doctor(settings)).faults, [])
  // Not every server needs the index of quotes.
  const indexes = (
    await Promise.all(
      ['quotes', 'sources'].map((name) =>
        db
          .collection(name)
          .indexes()
          .then((all) => all.map(({ key, name: index = '' }) => ({ collection: name, index, key })))
          .catch(() => []),
      ),
    )
  )
    .flat()
    .filter(({ index }) => index !== '_id_')
  assert(indexes.length > 0)
  for (const { collection, index, key } of indexes) {
    await db.collection(collection).dropIndex(index)
    const { faults } = await doctor(settings)
    assert.equal(faults.length, 1)
    assert.match(
      faults[0] ?? '',
      new RegExp(`^index of ${collection} by .*: missing \\| mongosh .*createIndex.*"${index}"`),
    )
    await db.collection(collection).createIndex(key, { name: index })
  }
})

test('doctor finds a MongoDB of which no majority commits', async (t) => {
  const mongodb = await openPrivateServer('MongoDB', requiredUrl('REDIS_URL'), {
    testCommands: true,
  })
  t.onTestFinished(mongodb.end)
  const failPoint = await openFailPoint(mongodb.url)
  t.onTestFinished(failPoint.close)
  await failPoint.set(['insert', 'update'], {
    writeConcernError: { code: 64, errmsg: 'waiting for replication' },
  })
  const { faults } = await doctor({ MONGODB_URL: mongodb.url, QUEUE: testQueueName() })
  assert.match(
    faults.join('\n'),
    /^a majority commits: Mongo.*waiting for replication.*rs\.status\(\)/,
  )
})

test.skipIf(program === undefined)(
  'doctor compares replicas and min-replicas-to-write with REDIS_REPLICAS',
  async (t) => {
    const startNode = await createStartNode(t, program ?? '')
    const own = ['--appendonly', 'yes', '--repl-diskless-sync-delay', '0']
    const primary = await startNode(own)
    await startNode([...own, '--replicaof', `127.0.0.1 ${primary.port}`])
    await until('a replica', async () =>
      /state=online/.test(String(await primary.send('INFO', 'replication'))),
    )
    const settings = { REDIS_URL: `redis://127.0.0.1:${primary.port}`, QUEUE: testQueueName() }
    assert.deepEqual((await doctor(settings)).faults, [])
    const { faults } = await doctor({ ...settings, REDIS_REPLICAS: '1' })
    assert.match(faults[0] ?? '', /^replicas: 1 online, 2 needed .*replicaof 127/)
    assert.match(
      faults[1] ?? '',
      /^min-replicas-to-write: 0, 1 online .*config set min-replicas-to-write 1 /,
    )
    await primary.send('CONFIG', 'SET', 'min-replicas-to-write', '1')
    assert.deepEqual(titlesOf((await doctor({ ...settings, REDIS_REPLICAS: '1' })).faults), [
      'replicas',
    ])
  },
)

test.skipIf(!canShiftClock(program))(
  'doctor finds the one clock that differs from the others',
  needs('libfaketime'),
  async (t: TestContext) => {
    const startNode = await createStartNode(t, program ?? '')
    const node = await startNode(['--appendonly', 'yes'], clockBehind(60))
    const url = `redis://127.0.0.1:${node.port}`
    const { faults } = await doctor({ REDIS_URL: url })
    assert.match(
      faults.join('\n'),
      new RegExp(`^Redis at 127\\.0\\.0\\.1:${node.port}: -(59|60)\\.\\d s .*chronyc makestep`),
    )
    const own = await doctor({ QUEUE: testQueueName(), ...clockBehind(60) })
    assert.match(
      own.faults.join('\n'),
      new RegExp(`^${hostname()}: -(59|60)\\.\\d s .*chronyc makestep`),
    )
  },
)
