import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeSuite, requiredUrl } from '@sluice/test-support'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { fateOf, statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { BUSY_MS, until } from '../support/until.ts'

/**
 * The law allows Redis to lose what was accepted in its last second (AOF everysec), in ms. A
 * SIGKILL leaves the page cache, so these tests do not show what a power cut loses.
 */
const LAST_SECOND_MS = 1_100
const REFUSED_WITHIN_MS = 2_000 + BUSY_MS
const HEALED_WITHIN_MS = 5_000 + BUSY_MS

let redis: PrivateServer
let sluice: TestSluice
/** What all tests so far posted. */
const ledger: Posted[] = []
beforeSuite(async (t) => {
  redis = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
  t.onTestFinished(redis.end)
  sluice = await startSluice(t, {
    workers: 2,
    redisUrl: redis.url,
    settings: { WAIT_SECONDS: '20' },
  })
})
const signalWorkers = (name: NodeJS.Signals) =>
  sluice.workers.forEach((worker) => void worker.signal(name))

test('accepted jobs survive a killed Redis, and the API and the workers reconnect', async (t) => {
  const { drained } = openQueue(t, sluice.settings)
  const stored = await postThread(sluice, aThread())
  signalWorkers('SIGSTOP')
  t.onTestFinished(() => signalWorkers('SIGCONT'))
  const answered = await Promise.all(
    Array.from({ length: 50 }, () => postThread(sluice, aThread(), 'respond-async')),
  )
  assert.deepEqual(statusesOf(answered), [202])
  const accepted = answered.filter(({ status }) => status === 202)
  assert(accepted.length >= 40, `${accepted.length} were accepted`)
  await pause(LAST_SECOND_MS)

  await redis.kill()
  signalWorkers('SIGCONT')
  for (const refused of await Promise.all([1, 2, 3].map(() => postThread(sluice, aThread()))))
    assertRefused(refused)
  assert.equal((await fetch(`${sluice.url}/readyz`)).status, 503)
  await redis.startAgain()
  const isReady = async () => (await fetch(`${sluice.url}/readyz`)).status === 200
  await until('the API accepts jobs again', isReady, HEALED_WITHIN_MS)
  const later = await postThread(sluice, aThread())
  assert.equal(later.status, 200)
  await drained()
  ledger.push(stored, ...answered, later)
  await assertStored(sluice.db, ledger)
  const working = sluice.workers.map((worker) => worker.child.exitCode)
  assert.deepEqual(working, [null, null])
})

test('while Redis is killed or hangs under load, callers get an answer within two seconds, it heals within five, and every 200 is stored', async (t) => {
  const { drained } = openQueue(t, sluice.settings)
  const load = postSteadily(t, sluice)
  await load.moreStored(30)
  for (const { makeUnavailable, giveBack } of [
    { makeUnavailable: redis.kill, giveBack: redis.startAgain },
    { makeUnavailable: redis.freeze, giveBack: redis.thaw },
  ]) {
    const before = load.posted.length
    await makeUnavailable()
    const refused = () => load.posted.slice(before).filter(isRefusal)
    await until('sixteen refusals', () => refused().length >= 16)
    for (const answer of refused()) assertRefused(answer)
    await giveBack()
    await load.moreStored(1, HEALED_WITHIN_MS)
    await load.moreStored(30)
  }
  const posted = await load.stop()
  await drained()
  const expected = new Set<unknown>([200, 503, 504])
  assert.deepEqual(
    posted.map(({ status }) => status).filter((status) => !expected.has(status)),
    [],
  )
  ledger.push(...posted.map(mayBeLost))
  await assertStored(sluice.db, ledger)
})

test('what was acknowledged more than a second before Redis is killed under load is stored', async (t) => {
  const { drained } = openQueue(t, sluice.settings)
  const load = postSteadily(t, sluice, { prefer: () => 'respond-async' })
  signalWorkers('SIGSTOP')
  t.onTestFinished(() => signalWorkers('SIGCONT'))
  const isAccepted = ({ status }: Posted) => status === 202
  const isEarly = ({ sentAt, ms }: Posted, killedAt: number) =>
    sentAt + ms <= killedAt - LAST_SECOND_MS
  const earlyBy = (moment: number) =>
    load.posted.filter((answer) => isAccepted(answer) && isEarly(answer, moment))
  await until('answers to be older than a second', () => earlyBy(performance.now()).length >= 50)

  await redis.kill()
  const killedAt = performance.now()
  const stopped = load.stop()
  await redis.startAgain()
  signalWorkers('SIGCONT')
  const posted = await stopped
  await drained()
  const [early, late] = [
    posted.filter((answer) => isEarly(answer, killedAt)),
    posted.filter((answer) => !isEarly(answer, killedAt)),
  ]
  // A busy machine may refuse some.
  assert(early.every((answer) => isAccepted(answer) || isRefusal(answer)))
  await t.annotate(`${early.length} answers before the last second, ${late.length} later ones`)
  ledger.push(...early, ...late.map(mayBeLost))
  await assertStored(sluice.db, ledger)
})

/** Redis may lose what it accepted in its last second. What has a 200 is stored already. */
function mayBeLost(answer: Posted): Posted {
  return fateOf(answer) === 'accepted' && answer.status !== 200
    ? { ...answer, status: 'none' }
    : answer
}

const isRefusal = ({ status, body }: Posted) => status === 503 || body.code === 'acceptance_unknown'

function assertRefused({ status, body, headers, ms }: Posted): void {
  // A 504 is the answer to a request that was under way when Redis was killed.
  if (status === 504) assert.equal(body.code, 'acceptance_unknown')
  else {
    assert.deepEqual([status, body.code], [503, 'queue_unavailable'])
    assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  }
  assert(ms < REFUSED_WITHIN_MS, `the refusal took ${ms} ms`)
}
