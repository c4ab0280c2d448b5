import assert from 'node:assert/strict'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { type Caller, createCaller, type Reply } from './support/caller.ts'
import { acceptedIn, jobIn, jobPathIn, problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const WAIT_SECONDS = 1

describe('a caller that waits in vain learns where the answer will be', () => {
  let sluice: TestSluice
  let caller: Caller
  beforeSuite(async (t) => {
    sluice = await startSluice(t, { workers: 0, settings: { WAIT_SECONDS: String(WAIT_SECONDS) } })
    caller = createCaller(sluice)
  })
  /** The duration of a reply by the API's own log. */
  const secondsFor = async ({ headers }: Reply) => {
    const requestId = headers.get('x-request-id')
    const { durationMs } = await sluice.api.line(
      (line) => line.msg === 'request.answered' && line.requestId === requestId,
    )
    return Number(durationMs) / 1000
  }
  const assertWaited = async (reply: Reply) => {
    const seconds = await secondsFor(reply)
    // Far below the default of 30 s and the 60 s that are requested below, however busy the machine
    // is.
    assert.ok(seconds >= WAIT_SECONDS - 0.05 && seconds < 20, `${seconds} s`)
  }
  /**
   * The reply to this call. It must come before the reply to a call that waits for the deadline.
   */
  const atOnce = async (call: () => Promise<Reply>) => {
    const waiting = caller.post(someThread()).then(() => undefined)
    const reply = await Promise.race([call(), waiting])
    await waiting
    assert.ok(reply !== undefined, 'it waited')
    return reply
  }
  const thread = someThread()
  const claimed = { 'idempotency-key': 'of-a-job-that-waits' }
  const paths: string[] = []

  test('a caller without preferences gets a 504 with the id of the job at the deadline, and the job goes on', async () => {
    const reply = await caller.post(thread, claimed)
    const { jobId, detail } = problemIn(reply, 504, 'job_pending')
    await assertWaited(reply)
    assert.equal(jobPathIn(reply), `/jobs/${jobId}`)
    assert.match(detail, /again is safe/)
    paths.push(jobPathIn(reply))
  })

  test('a replay waits for the same job, and gets a 504 with the same id', async () => {
    const reply = await caller.post(thread, claimed)
    problemIn(reply, 504, 'job_pending')
    await assertWaited(reply)
    assert.equal(jobPathIn(reply), paths[0])
  })

  test('a caller that prefers a wait gets a 202 after the wait, or at the deadline', async () => {
    for (const prefer of ['wait=1', 'respond-async, wait=1', 'wait=60']) {
      const reply = await caller.post(someThread(), { prefer })
      acceptedIn(reply)
      assert.equal(reply.headers.get('preference-applied'), prefer)
      await assertWaited(reply)
      paths.push(jobPathIn(reply))
    }
  })

  test('a caller that does not wait gets a 202 at once', async () => {
    const reply = await atOnce(() => caller.post(someThread(), { prefer: 'wait=0' }))
    acceptedIn(reply)
    paths.push(jobPathIn(reply))
  })

  test('GET /jobs waits as long as its caller prefers, and the job is not tried yet', async () => {
    const [path = ''] = paths
    const reply = await caller.get(path, { prefer: 'wait=1' })
    const { state, attempts, result, problem } = jobIn(reply)
    assert.deepEqual([state, attempts, result, problem], ['waiting', 0, undefined, undefined])
    await assertWaited(reply)
    assert.equal(jobIn(await atOnce(() => caller.get(path))).state, 'waiting')
  })

  test('each of these jobs has its result when a worker has started', async () => {
    const waiting = caller.get(paths[0] ?? '', { prefer: 'wait=60' })
    const worker = await sluice.startWorker()
    await waiting
    await worker.line(({ msg, jobId }) => msg === 'job.stored' && paths.at(-1) === `/jobs/${jobId}`)
    for (const path of paths) {
      const { state, result } = jobIn(await caller.get(path, { prefer: 'wait=1' }))
      assert.equal(state, 'completed')
      assert.equal(result?.source.outcome, 'created')
    }
  })

  test('posting the same thread again finds it stored', async () => {
    assert.equal(storedIn(await caller.post(thread)).source.outcome, 'unchanged')
  })
})
