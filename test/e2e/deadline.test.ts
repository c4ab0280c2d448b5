import assert from 'node:assert/strict'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { startSluice, type TestSluice } from '../start-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { acceptedIn, jobIn, jobPathIn, problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

describe('who waits in vain is told where the answer will be', () => {
  let sluice: TestSluice
  let caller: Caller
  beforeSuite(async (t) => {
    sluice = await startSluice(t, { workers: 0, settings: { WAIT_SECONDS: '1' } })
    caller = createCaller(sluice)
  })
  const timed = async <T>(run: Promise<T>) => {
    const began = performance.now()
    return { reply: await run, seconds: (performance.now() - began) / 1000 }
  }
  const thread = someThread()
  const paths: string[] = []

  test('a plain caller gets a 504 at the deadline, with the id of the job, which goes on', async () => {
    const { reply, seconds } = await timed(caller.post(thread))
    const { jobId, detail } = problemIn(reply, 504, 'job_pending')
    assert.ok(seconds >= 0.95 && seconds < 2, `${seconds} s`)
    assert.equal(jobPathIn(reply), `/jobs/${jobId}`)
    assert.match(detail, /again is safe/)
    paths.push(jobPathIn(reply))
  })

  test('who asked for a wait gets a 202 when it is over, or at the deadline', async () => {
    for (const prefer of ['wait=1', 'respond-async, wait=1', 'wait=60']) {
      const { reply, seconds } = await timed(caller.post(someThread(), { prefer }))
      acceptedIn(reply)
      assert.equal(reply.headers.get('preference-applied'), prefer)
      assert.ok(seconds >= 0.95 && seconds < 2, `${prefer}: ${seconds} s`)
      paths.push(jobPathIn(reply))
    }
  })

  test('who does not wait gets it at once', async () => {
    const { reply, seconds } = await timed(caller.post(someThread(), { prefer: 'wait=0' }))
    acceptedIn(reply)
    assert.ok(seconds < 0.5, `${seconds} s`)
    paths.push(jobPathIn(reply))
  })

  test('the job waits, untried, and is waited for as long as asked', async () => {
    const [path = ''] = paths
    const { reply, seconds } = await timed(caller.get(path, { prefer: 'wait=1' }))
    const { state, attempts, result, problem } = jobIn(reply)
    assert.deepEqual([state, attempts, result, problem], ['waiting', 0, undefined, undefined])
    assert.ok(seconds >= 0.95 && seconds < 2, `${seconds} s`)
    assert.ok((await timed(caller.get(path))).seconds < 0.5)
  })

  test('once a worker is there each of those jobs has its result', async () => {
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

  test('and posting the same again finds it stored', async () => {
    assert.equal(storedIn(await caller.post(thread)).source.outcome, 'unchanged')
  })
})
