import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { type TestContext, test, vi } from 'vitest'
import type { FailedJobs } from './failed-jobs.ts'
import {
  createOperations,
  type OpenOperation,
  OperationsFullError,
  runOperations,
  type StepDone,
} from './operations.ts'

function open(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  const queue = testQueueName()
  const keys = queueKeys(queue)
  t.onTestFinished(async () => {
    const left = await redis.keys(`${keys.prefix.replace('{', '\\{')}*`)
    if (left.length > 0) await redis.del(left)
    redis.disconnect()
  })
  return { redis, queue, keys, operations: createOperations(redis, keys) }
}

/** Failed jobs that notes what is moved, and when, in ms. */
function noting() {
  const moved: { kind: string; ids: readonly string[]; at: number }[] = []
  const failedJobs: FailedJobs = {
    list: () => assert.fail(),
    groups: () => assert.fail(),
    scan: () => assert.fail(),
    count: () => assert.fail(),
    async move(kind, ids) {
      moved.push({ kind, ids, at: performance.now() })
      return ids.length
    },
  }
  return { moved, failedJobs }
}

const NO_THREADS = { takeThreadStep: () => assert.fail(), openDue: async () => {} }

/** Runs operations until a step is the last of its operation. */
function run(
  t: TestContext,
  operations: ReturnType<typeof open>['operations'],
  failedJobs: FailedJobs,
  jobsPerSecond: number,
) {
  const finished = Promise.withResolvers<void>()
  const onStep = (_: OpenOperation, { isLast }: StepDone) => isLast && finished.resolve()
  const stop = runOperations({
    failedJobs,
    operations,
    jobsPerSecond,
    onStep,
    onError: assert.fail,
    ...NO_THREADS,
  })
  t.onTestFinished(stop)
  return { stop, finished: finished.promise }
}

const PROGRAM = join(import.meta.dirname, 'signalled-operations.program.ts')
const ids = Array.from({ length: 25 }, () => randomUUID())

test('an operation is carried out in steps, no faster than its rate, and its progress is recorded', async (t) => {
  const { operations } = open(t)
  const { id, state } = await operations.open('retry', { ids }, ids.length, 'k')
  assert.equal(state, 'waiting')
  const { moved, failedJobs } = noting()
  const { finished } = run(t, operations, failedJobs, 20)
  await finished
  assert.deepEqual(
    moved.flatMap((step) => step.ids),
    ids,
  )
  assert.ok(Number(moved[1]?.at) - Number(moved[0]?.at) > 950, 'twenty jobs take a second')
  const operation = await operations.find(id)
  assert.deepEqual([operation?.state, operation?.examined, operation?.done], ['completed', 25, 25])
})

test('one process at a time works, and another goes on where the first one stopped', async (t) => {
  const { operations, redis, keys } = open(t)
  const { id } = await operations.open('discard', { ids }, ids.length, 'k')
  const first = await operations.claim('first')
  assert.equal(first?.operation.id, id)
  assert.equal(await operations.claim('second'), undefined)
  const step = { examined: 10, done: 9, isLast: false, after: { at: 0, id: ids[9] ?? '' } }
  assert.equal(await operations.record('first', first as OpenOperation, step), true)
  // As if the first process had ended and its lease had expired.
  await redis.del(`${keys.base}operations-lease`)
  const second = await operations.claim('second')
  assert.deepEqual(
    [second?.operation.examined, second?.operation.state, second?.after],
    [10, 'active', step.after],
  )
  assert.equal(await operations.record('first', first as OpenOperation, step), false)
  const { operation } = second as OpenOperation
  assert.equal(operation.done, 9)
})

test('a step that takes longer than the lease is recorded', async (t) => {
  const { operations, redis, keys } = open(t)
  await operations.open('erase', { filter: { tenant: 'acme' } }, 0, 'k')
  const lease = `${keys.base}operations-lease`
  const recorded = Promise.withResolvers<StepDone>()
  const stop = runOperations({
    ...{ ...noting(), operations, jobsPerSecond: 20, onError: recorded.reject, ...NO_THREADS },
    async takeThreadStep() {
      // As if the lease were nearly at its end.
      await redis.pexpire(lease, 3_000)
      await vi.waitUntil(async () => (await redis.pttl(lease)) > 3_000, { timeout: 5_000 })
      return { examined: 1, done: 1, isLast: true }
    },
    onStep: (_, step) => recorded.resolve(step),
  })
  t.onTestFinished(stop)
  assert.equal((await recorded.promise).done, 1)
})

/** The first process records four steps, one a second. The signal arrives during the fifth. */
const [RATE, STEPS] = [3, 5]
/** 2 s of the lease of 5 s are left after four steps if no step has renewed it. */
const RENEWED_MS = 2_500
/** A step, the lease, the pause between two looks, and what a busy machine may add. */
const TAKEOVER_MS = 1_000 + 5_000 + 1_000 + 3_000

for (const signal of ['SIGKILL', 'SIGSTOP'] as const)
  test.concurrent(`another process waits while one carries out an operation, and goes on when it gets ${signal} during a step`, async (t) => {
    const { operations, queue, redis, keys } = open(t)
    const { id } = await operations.open('retry', { ids }, ids.length, 'k')
    const recorded = async (examined: number) =>
      vi.waitFor(
        async () => assert.ok(Number((await operations.find(id))?.examined) >= examined),
        60_000,
      )
    const settings = [queue, requiredUrl('REDIS_URL'), `${RATE}`, `${STEPS}`, signal]
    const first = spawn(process.execPath, [PROGRAM, ...settings], { stdio: 'inherit' })
    const ended = once(first, 'exit')
    t.onTestFinished(() => void first.kill('SIGKILL'))
    await recorded(RATE)
    const { moved, failedJobs } = noting()
    const { finished } = run(t, operations, failedJobs, 1_000)
    await recorded(RATE * (STEPS - 1))
    const last = performance.now()
    assert.ok((await redis.pttl(`${keys.base}operations-lease`)) > RENEWED_MS)
    await finished
    // The step that was not recorded is repeated, and no other one.
    assert.deepEqual(
      moved.flatMap((step) => step.ids),
      ids.slice(RATE * (STEPS - 1)),
    )
    const tookMs = Number(moved[0]?.at) - last
    assert.ok(tookMs < TAKEOVER_MS, `${tookMs} ms`)
    const completed = await operations.find(id)
    assert.equal(completed?.state, 'completed')

    // The first process finds that it has lost the lease.
    first.kill('SIGCONT')
    first.kill('SIGTERM')
    const [code, by] = await ended
    assert.deepEqual([code, by], signal === 'SIGKILL' ? [null, signal] : [0, null])
    assert.deepEqual(await operations.find(id), completed)
  })

test('operations are carried out in the order in which they were opened', async (t) => {
  const { operations } = open(t)
  const { moved, failedJobs } = noting()
  await operations.open('retry', { ids: ids.slice(0, 2) }, 2, 'k')
  await operations.open('discard', { ids: ids.slice(2, 4) }, 2, 'k')
  const { id } = await operations.open('retry', { ids: [] }, 0, 'k')
  const completed = Promise.withResolvers<void>()
  const onStep = ({ operation }: OpenOperation) => operation.id === id && completed.resolve()
  t.onTestFinished(
    runOperations({
      ...{ failedJobs, operations, ...NO_THREADS },
      ...{ jobsPerSecond: 1_000, onStep, onError: assert.fail },
    }),
  )
  await completed.promise
  assert.deepEqual(
    moved.map(({ kind }) => kind),
    ['retry', 'discard', 'retry'],
  )
})

test('an operation on threads, which may take hours, leaves the others their turns', async (t) => {
  const { operations } = open(t)
  const { moved, failedJobs } = noting()
  await operations.open('delete', { filter: { tenant: 'acme' } }, 0, 'k')
  const { id } = await operations.open('retry', { ids }, ids.length, 'k')
  const completed = Promise.withResolvers<void>()
  const onStep = ({ operation }: OpenOperation, { isLast }: StepDone) =>
    isLast && operation.id === id && completed.resolve()
  const takeThreadStep = async () => ({ examined: 0, done: 0, isLast: false })
  const deps = { failedJobs, operations, takeThreadStep, openDue: async () => {} }
  t.onTestFinished(runOperations({ ...deps, jobsPerSecond: 1_000, onStep, onError: assert.fail }))
  await completed.promise
  assert.deepEqual(
    moved.flatMap((step) => step.ids),
    ids,
  )
})

test('the newest operations are listed with who opened them, open or completed, and all open ones', async (t) => {
  const { operations } = open(t)
  const filter = { reason: 'refused' }
  const completed = await operations.open('retry', { ids: ids.slice(0, 2) }, 2, 'ada')
  const { finished, stop } = run(t, operations, noting().failedJobs, 1_000)
  await finished
  await stop()
  assert.deepEqual(
    (await operations.list()).map(({ id, by, state, done, filter }) => ({
      id,
      by,
      state,
      done,
      filter,
    })),
    [{ id: completed.id, by: 'ada', state: 'completed', done: 2, filter: undefined }],
  )
  const opened = []
  for (let at = 0; at < 100; at++)
    opened.push(await operations.open('discard', { filter }, 0, 'grace'))
  assert.deepEqual(await operations.list(), opened.reverse())
  assert.deepEqual(opened[0]?.filter, filter)
  assert.equal((await operations.find(completed.id))?.done, 2)
  const { pause, ...paused } = await operations.operateLane('pause', 'bulk', 'ada')
  assert.deepEqual(pause, { by: 'ada', since: paused.createdAt })
  const listed = await operations.list()
  assert.deepEqual([listed[0], listed.length], [paused, 101])
  assert.deepEqual(listed.slice(1), opened)
})

test('too many open operations are refused', async (t) => {
  const { operations } = open(t)
  await Promise.all(
    Array.from({ length: 100 }, () => operations.open('retry', { ids: [] }, 0, 'k')),
  )
  await assert.rejects(operations.open('retry', { ids: [] }, 0, 'k'), OperationsFullError)
})
