import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '@sluice/local'
import { connectLike, connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { type TestScope, testQueueName } from '@sluice/test-support'
import { describe, type TestContext, test } from 'vitest'
import { readDifferences } from '../support/assert-stored.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, deleteThread, type Posted, postThread } from '../support/post-thread.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { BUSY_MS, until } from '../support/until.ts'
import {
  canShiftClock,
  clockBehind,
  createStartNode,
  redisProgram,
  replicated,
  startCluster,
  startSentinels,
  type Topology,
} from './redis-topology.ts'

const program = await redisProgram()
const CALLERS = 8
/** The pause of a caller. While a test waits for a failover, other tests need the machine. */
const REST_MS = 200

type Kind = 'Sentinel' | 'a cluster'
const FAULTS = { killed: 'SIGKILL', 'frozen and thawed': 'SIGSTOP' } as const
const KINDS = ['Sentinel', 'a cluster'] as const
const CASES = KINDS.flatMap((kind) =>
  (['frozen and thawed', 'killed'] as const).map((fault) => ({ kind, fault })),
)
const NO_DIFFERENCES = { storedTwice: [], neverAccepted: [], outdated: [], wrongTotals: [] }
const LOSSES = [
  { kind: 'Sentinel', isKilled: true, replicas: 0 },
  { kind: 'Sentinel', isKilled: true, replicas: 1 },
  { kind: 'Sentinel', isKilled: false, replicas: 0 },
  { kind: 'a cluster', isKilled: true, replicas: 0 },
  { kind: 'a cluster', isKilled: false, replicas: 0 },
] as const
/**
 * How long the replicas' link is cut before the primary is killed: what is accepted meanwhile may
 * be lost.
 */
const CUT_MS = 400
const BEHIND_S = 60

describe.skipIf(program === undefined)(
  'Redis whose primary fails, under Sentinel and in a cluster',
  () => {
    for (const { kind, fault } of CASES)
      test(`a primary that is ${fault} under ${kind} costs seconds, and no answer lies`, {
        timeout: 180_000,
      }, async (t) => {
        const { redis, sluice } = await start(t, kind)
        const load = repost(t, sluice)
        await load.more(60)
        const [old] = redis.nodes
        const failure = await fail(t, redis, load, () => old.signal(FAULTS[fault]))
        if (fault === 'frozen and thawed') {
          await load.more(60)
          old.signal('SIGCONT')
        }
        await load.more(60)
        const posted = await load.stop()
        await openQueue(t, sluice.settings).drained()
        failure.assertSoon()
        const twice = storedTwice(sluice)
        assert(twice.length <= IN_HAND, `${twice.length} jobs ran twice`)
        await t.annotate(`${twice.length} jobs ran twice`)
        assert.deepEqual(await readDifferences(sluice.db, posted, { afterCrash: true }), {
          lost: [],
          ...NO_DIFFERENCES,
        })
        assert.deepEqual(await loadOf(t, sluice), [0, 0, 0])
      })

    for (const { kind, isKilled, replicas } of LOSSES)
      test(`only what a primary under ${kind} accepted after it was cut off from its replicas${isKilled ? ' and before it was killed' : ''} is lost, ${replicas > 0 ? 'nothing with REDIS_REPLICAS, ' : ''}and callers learn it`, {
        timeout: 180_000,
      }, async (t) => {
        const env = canShiftClock(program) ? clockBehind(BEHIND_S) : {}
        const { redis, sluice } = await start(t, kind, env, { REDIS_REPLICAS: String(replicas) })
        const load = repost(t, sluice)
        await load.more(60)
        // All jobs wait.
        for (const worker of sluice.workers) worker.signal('SIGSTOP')
        const [old] = redis.nodes
        const claims = Array.from({ length: 5 }, () => ({ thread: aThread(), key: randomUUID() }))
        const postClaims = () =>
          Promise.all(
            claims.map(({ thread, key }) => postThread(sluice, thread, 'respond-async', key)),
          )
        const claimed = await postClaims()
        await replicated(old)
        const cutAt = performance.now()
        redis.cutReplicas()
        const unsafe = Promise.all(
          Array.from({ length: 20 }, () => postThread(sluice, aThread(), 'respond-async')),
        )
        await delay(CUT_MS)
        const failing = () => isKilled && old.signal('SIGKILL')
        const failure = await fail(t, redis, load, failing, () => {
          for (const worker of sluice.workers) worker.signal('SIGCONT')
        })
        await load.more(60)
        const again = await postClaims()
        const jobsOf = (answers: readonly Posted[]) =>
          answers.map(({ headers }) => headers.get('location'))
        assert.deepEqual(jobsOf(again), jobsOf(claimed))
        const posted = [...(await load.stop()), ...(await unsafe), ...claimed, ...again]
        await openQueue(t, sluice.settings).drained()
        failure.assertSoon()
        const { lost, ...others } = await readDifferences(sluice.db, posted, { afterCrash: true })
        await t.annotate(`${lost.length} names lost of ${posted.length} requests`)
        assert.deepEqual(others, NO_DIFFERENCES)
        const safe =
          replicas > 0 ? posted : posted.filter(({ sentAt, ms }) => sentAt + ms < cutAt - LAG_MS)
        const names = new Set(safe.flatMap(namesIn))
        // A worker that was frozen may have had all of them in its hands.
        if (isKilled) assert.equal(lost.length > 0, replicas === 0)
        assert.deepEqual(
          lost.filter((name) => names.has(name)),
          [],
        )
        const longest = (some: readonly Posted[]) => Math.max(0, ...some.map(({ ms }) => ms))
        const learned = longest(posted.filter(({ body }) => body.code === 'acceptance_unknown'))
        const soonest = CUT_MS + failure.acceptingMs + BUSY_MS
        assert(
          learned < soonest + LEARNED_MS,
          `a caller learned after ${learned} ms that its job is lost`,
        )
        assert(longest(posted) < soonest + TAKEN_OVER_MS, `an answer after ${longest(posted)} ms`)
        assert.deepEqual(await loadOf(t, sluice), [0, 0, 0])
      })
  },
)

/**
 * The most jobs that workers have in hand at once: each caller waits for one, and every fourth post
 * does not wait.
 */
const IN_HAND = 2 * CALLERS

/** The ids of the jobs that workers stored more than once. */
function storedTwice({ workers }: TestSluice): unknown[] {
  const stored = workers.flatMap(({ log }) =>
    log.filter(({ msg }) => msg === 'job.stored').map(({ jobId }) => jobId),
  )
  return stored.filter((id, at) => stored.indexOf(id) < at)
}

/** Callers learn so soon after a failover that their job was lost. */
const LEARNED_MS = 2_000
/**
 * A job that a broken connection took with it is taken over so soon: its lock ends, and workers
 * look twice.
 */
const TAKEN_OVER_MS = 12_000
/** How far replicas may be behind before they are cut off. */
const LAG_MS = 100

const namesIn = ({ externalId, quotes }: Posted) => [
  externalId,
  ...quotes.map((quote) => `${externalId}/${quote}`),
]

/** Lets the primary fail, and waits until jobs are stored again. */
async function fail(
  t: TestContext,
  redis: Topology,
  load: ReturnType<typeof repost>,
  failing: () => void,
  onPrimary = () => {},
) {
  const [old] = redis.nodes
  const failedAt = performance.now()
  failing()
  await redis.primaryAfter(old)
  const detectedMs = performance.now() - failedAt
  onPrimary()
  // The jobs of all callers may be in the hands of a broken connection, and wait until their locks
  // end.
  load.addCaller()
  const before = load.posted.length
  await until('an answer of 200', () =>
    load.posted.slice(before).some(({ status }) => status === 200),
  )
  const acceptingMs = performance.now() - failedAt
  await t.annotate(
    `another primary after ${Math.round(detectedMs)} ms, accepting after ${Math.round(acceptingMs)} ms`,
  )
  return {
    acceptingMs,
    assertSoon: () =>
      assert(
        acceptingMs < detectedMs + 3_000 + BUSY_MS,
        `${acceptingMs} ms, detected ${detectedMs}`,
      ),
  }
}

test.skipIf(program === undefined)(
  'all connections of a process follow the first one that meets another server, and none goes back',
  async (t) => {
    assert(program)
    const startNode = await createStartNode(t, program)
    const [one, other] = await Promise.all([startNode([]), startNode([])])
    for (const [name, node] of Object.entries({ one, other })) await node.send('SET', 'name', name)
    let target = one.port
    const balancer = createServer((client) => {
      const upstream = connect(target, '127.0.0.1')
      client.pipe(upstream).pipe(client)
      for (const [socket, peer] of [[client, upstream] as const, [upstream, client] as const])
        socket.on('error', () => {}).on('close', () => peer.destroy())
    })
    const port = await freePort()
    await once(balancer.listen(port, '127.0.0.1'), 'listening')
    t.onTestFinished(() => void balancer.close())

    const first = connectRetrying({ redisUrl: `redis://127.0.0.1:${port}`, queue: 'any' }, () => {})
    const second = connectLike(first, () => {}, 10_000)
    for (const redis of [first, second]) t.onTestFinished(() => redis.disconnect())
    assert.deepEqual(await Promise.all([first.get('name'), second.get('name')]), ['one', 'one'])

    target = other.port
    const moved = once(second, 'close')
    first.disconnect(true)
    await moved
    assert.deepEqual(await Promise.all([second.get('name'), first.get('name')]), ['other', 'other'])

    target = one.port
    second.disconnect(true)
    await once(second, 'close')
    // It meets the server that the process has left, and is ended before it is ready.
    await once(second, 'close')
    assert.equal(await first.get('name'), 'other')
    target = other.port
    assert.equal(await second.get('name'), 'other')
  },
)

test.skipIf(program === undefined)(
  'a Redis that is a replica is refused in plain words',
  async (t) => {
    assert(program)
    const startNode = await createStartNode(t, program)
    const primary = await startNode(['--repl-diskless-sync-delay', '0'])
    const replica = await startNode(['--replicaof', `127.0.0.1 ${primary.port}`])
    await until('a link', async () =>
      /link_status:up/.test(String(await replica.send('INFO', 'replication'))),
    )
    const errors: string[] = []
    const address = { redisUrl: `redis://127.0.0.1:${replica.port}`, queue: 'any' }
    const redis = connectRetrying(address, ({ message }) => void errors.push(message))
    t.onTestFinished(() => redis.disconnect())
    await until('an error', () => errors.length > 0)
    assert.match(errors[0] ?? '', /is a replica/)
    await replica.send('REPLICAOF', 'NO', 'ONE')
    assert.equal(await redis.set('name', 'promoted'), 'OK')
  },
)

/** Starts Redis and Sluice. */
async function start(
  t: TestScope,
  kind: Kind,
  replicaEnv = {},
  settings: Record<string, string> = {},
) {
  assert(program)
  const QUEUE = testQueueName()
  const redis: Topology =
    kind === 'Sentinel'
      ? await startSentinels(t, program, replicaEnv)
      : await startCluster(t, program, QUEUE, replicaEnv)
  const sluice = await startSluice(t, {
    redisUrl: redis.url,
    workers: 2,
    settings: { QUEUE, ...settings },
  })
  return { redis, sluice }
}

/**
 * Starts callers that each post one thread again and again: its title shows which post came last.
 * After twenty posts, they delete every second one.
 */
function repost(t: TestScope, sluice: TestSluice) {
  const posted: Posted[] = []
  let stopping = false
  t.onTestFinished(() => {
    stopping = true
  })
  async function call(_?: unknown, at = 0): Promise<void> {
    for (let post = at * 5, externalId: string = randomUUID(); !stopping; post++) {
      if (post % 20 === 0) externalId = randomUUID()
      const thread = aThread({ externalId, quotes: 1, from: post % 20 })
      posted.push(await postThread(sluice, thread, post % 4 === 3 ? 'respond-async' : undefined))
      if (post % 40 === 19) posted.push(await deleteThread(sluice, externalId))
      await delay(REST_MS)
    }
  }
  const running = Array.from({ length: CALLERS }, call)
  return {
    posted,
    addCaller: () => void running.push(call()),
    more(count: number) {
      const wanted = posted.filter(({ status }) => status === 200).length + count
      return until(
        'more answers of 200',
        () => posted.filter(({ status }) => status === 200).length >= wanted,
      )
    },
    async stop() {
      stopping = true
      await Promise.all(running)
      return posted
    },
  }
}

/** The threads, bytes and interactive threads that count as load. */
async function loadOf(
  t: TestScope,
  { settings: { REDIS_URL = '', QUEUE = '' } }: TestSluice,
): Promise<unknown> {
  const redis = connectRetrying({ redisUrl: REDIS_URL, queue: QUEUE }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const read = `local t = {cmsgpack.unpack(redis.call('HGET', KEYS[1], 'all'))} return {t[1], t[2], t[3]}`
  return redis.eval(read, 1, `${queueKeys(QUEUE).base}load`)
}
