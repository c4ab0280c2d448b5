import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { createBatchStore, mongoCommands, type SourceDocument } from '@sluice/store'
import { createPrinter, RedisUnavailableError } from '@sluice/terminal'
import { requiredUrl, testDatabase, testQueueName } from '@sluice/test-support'
import { MongoParseError, ObjectId } from 'mongodb'
import { type TestContext, test, vi } from 'vitest'
import { type DoctorDeps, doctorCommand } from './doctor-command.ts'

/**
 * Runs `sluice doctor …` on a database of the test's own with two stored threads of two quotes, of
 * two words each.
 */
async function examined(t: TestContext, withOwnQueue?: DoctorDeps['withQueue'], env = {}) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const keys = queueKeys(testQueueName())
  const withQueue: DoctorDeps['withQueue'] = withOwnQueue ?? ((work) => work(redis, keys))
  const db = await testDatabase(t)
  const sources = db.collection<SourceDocument>('sources')
  const threads = ['one', 'two'].map((externalId, at) => ({
    id: `request-${at}`,
    tenant: 'acme',
    stamp: Date.now() * 1_000 + at,
    redelivered: false,
    thread: {
      source: { service: 'slack' as const, externalId, title: 'A thread' },
      quotes: ['a', 'b'].map((quote) => ({ externalId: quote, text: 'two words' })),
    },
  }))
  const worker = createBatchStore(mongoCommands(db))
  await worker.store(threads)
  await worker.settle()
  const state = { open: 0 }
  const openDb = async () => {
    state.open++
    return { db, close: async () => void state.open-- }
  }
  /** What the last command has shown. */
  const shown: string[] = []
  async function doctor(...args: string[]) {
    const lines: string[] = []
    const failures: string[] = []
    shown.length = 0
    const show = (line: string) => void shown.push(line)
    // The Redis of the tests writes no append-only file: that is a fault of servers.
    const fail = (line: string) => void (/ of servers: /.test(line) || failures.push(line))
    const print = createPrinter((text) => void lines.push(text.slice(0, -1)))
    await doctorCommand({ env, process, openDb, withQueue, print, show, fail, progressMs: 0 })
      .parseAsync(args, { from: 'user' })
      .finally(() => assert.equal(state.open, 0, 'the database is closed'))
    return { text: lines.map((line) => `${line}\n`).join(''), failures }
  }
  const wordCount = async () => (await sources.findOne({ externalId: 'one' }))?.wordCount
  return { db, redis, keys, sources, doctor, shown, wordCount }
}

test('finds nothing wrong after workers stored threads', async (t) => {
  const { doctor, shown } = await examined(t)
  const { text, failures } = await doctor()
  assert.match(
    shown[0] ?? '',
    /^Compares the word count .* of each source with its stored quotes: about 2 sources\.$/,
  )
  assert.match(text, /^Checked 2 sources/m)
  assert.match(text, /^ {2}ok {5}load of the queue: agrees with its jobs$/m)
  assert.match(text, /Wrong: 0\n$/)
  assert.deepEqual(failures, [])
})

test('corrects the totals of the load, and says why it did not compare them', async (t) => {
  const { redis, keys, doctor } = await examined(t)
  await redis.eval(
    "redis.call('HSET', KEYS[1], 'all', cmsgpack.pack(7, 7, 7, 0, 0, 0, 9))",
    1,
    `${keys.base}load`,
  )
  t.onTestFinished(async () => void (await redis.del(`${keys.base}load`)))
  assert.match(
    (await doctor()).text,
    /^ {2}note {3}load of the queue: was wrong, and is corrected$/m,
  )
  assert.match((await doctor()).text, /load of the queue: agrees/)
  const refuse = () => Promise.reject(new RedisUnavailableError('Redis cannot be reached: refused'))
  const unavailable = await examined(t, refuse, {
    REDIS_URL: 'redis+sentinel://u:secret@one,[::1]:7001/main',
  })
  const { text } = await unavailable.doctor()
  assert.match(
    text,
    /^ {2}FAULT {2}Redis cannot be reached: refused\. The load of the queue is not compared\.$/m,
  )
  assert.match(
    text,
    /^ +fix: redis-cli -h one -p 26379 ping; redis-cli -h ::1 -p 7001 ping {2}# if it answers, correct REDIS_URL$/m,
  )
  assert.match(text, /Wrong: 0\n$/)
  const wrong = await examined(t, refuse, { REDIS_URL: 'http://one' })
  const faults = { exitCode: 2, message: /^The settings .*\n {2}REDIS_URL must be a URL like \S+,/ }
  await assert.rejects(wrong.doctor(), faults)
})

test('names the setting to correct if MongoDB is not the one in MONGODB_URL', async () => {
  const openDb = () => Promise.reject(new MongoParseError('option foo is not supported'))
  const withQueue = () => assert.fail('asks Redis')
  const deps = {
    env: {},
    process,
    openDb,
    withQueue,
    print: assert.fail,
    show: assert.fail,
    fail: assert.fail,
  }
  const running = doctorCommand(deps).parseAsync([], { from: 'user' })
  const message = /^MongoDB failed: option foo .*\. If MongoDB runs, correct MONGODB_URL\. If not, /
  await assert.rejects(running, { exitCode: 2, message })
})

test('says how far it is, and reads thousands of sources at once', async (t) => {
  const { db, sources, doctor, shown } = await examined(t)
  const version = new ObjectId()
  const some = Array.from({ length: 998 }, (_, at) => {
    return { _id: `s${at}`, wordCount: 0, quoteCount: 0, meta: { version, stamp: 1 } }
  })
  await sources.insertMany(some as never)
  let pages = 0
  for await (const _ of mongoCommands(db).scanSources()) pages += 1
  assert.equal(pages, 1)
  await doctor()
  assert.deepEqual(
    shown.slice(1, 3),
    [100, 200].map((checked) => `Checked ${checked} of about 1,000 sources.`),
  )
})

test('names a source with a wrong count and fails, and changes nothing without --repair', async (t) => {
  const { sources, doctor, wordCount } = await examined(t)
  await sources.updateOne({ externalId: 'one' }, { $set: { wordCount: 99 } })
  const { text, failures } = await doctor()
  assert.match(
    text,
    /Wrong: 1\n {2}slack\/one of tenant acme.*: wordCount is 99, its quotes have 4 words/,
  )
  assert.match(failures.join(), /--repair/)
  assert.equal(await wordCount(), 99)
})

test('repairs wrong sources with --repair, and finds none afterwards', async (t) => {
  const { sources, doctor, wordCount } = await examined(t)
  await sources.updateOne({ externalId: 'one' }, { $set: { wordCount: 99 } })
  await sources.insertOne({ _id: 'foreign', title: 'of another program' } as never)
  const { text, failures } = await doctor('--repair')
  assert.match(text, /Checked 2 sources.*Repaired: 1/s)
  assert.match(text, /Sluice did not write them: 1 document of sources, such as foreign\./)
  assert.deepEqual(failures, [])
  assert.equal(await wordCount(), 4)
  assert.match((await doctor()).text, /Wrong: 0\n/)
})

test('calls a source right that has a dead writer’s token, and takes an expired one off with --repair', async (t) => {
  const { sources, doctor } = await examined(t)
  const writer = (since: number) => ({
    $set: {
      'meta.tokens': [{ request: 'another', since: new Date(since), writer: 'gone', batch: 1 }],
    },
  })
  await sources.updateOne({ externalId: 'one' }, writer(Date.now() - 120_000))
  await sources.updateOne({ externalId: 'two' }, writer(Date.now() - 15_000))
  const { text, failures } = await doctor()
  assert.match(
    text,
    /Wrong: 0\nRight, with the token of a writer that is slow or gone: 2\n.*slack\/one.*: there is nothing to do; from 2\d{3}-.* UTC on, .*\n.*slack\/two.*: there is nothing to do; from 2.*\n/,
  )
  assert.deepEqual(failures, [])
  assert.match((await doctor('--repair')).text, /Wrong: 0\nRepaired: 0\n/)
  assert.deepEqual(await sources.distinct('externalId', { 'meta.tokens': { $exists: true } }), [
    'two',
  ])
})

test('checks again what dead writers have left wrong, which is right once the request is delivered again', {
  // A token counts as left after ten seconds.
  timeout: 30_000,
}, async (t) => {
  const { sources, doctor, shown } = await examined(t)
  for (const [externalId, ms] of Object.entries({ one: 0, two: 15_000 })) {
    const since = new Date(Date.now() - ms)
    const token = { request: 'another', since, writer: 'gone', batch: 1 }
    await sources.updateOne({ externalId }, { $set: { wordCount: 9, 'meta.tokens': [token] } })
  }
  const examining = doctor('--repair')
  await vi.waitFor(() => assert.match(shown.join(), /writing 2 of them/), 10_000)
  const $set = { wordCount: 4, 'meta.version': new ObjectId() }
  await sources.updateOne({ externalId: 'two' }, { $set, $unset: { 'meta.tokens': 1 } })
  const { text } = await examining
  assert.match(
    text,
    /Wrong: 1\n.*slack\/one.*: wordCount is 9, its quotes have 4 words\. --repair counts them again\nRepaired: 1\n/,
  )
})
