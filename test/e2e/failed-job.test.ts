import assert from 'node:assert/strict'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { mongodbCan } from '../support/mongodb-can.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { type Caller, createCaller, type Reply } from './support/caller.ts'
import { acceptedIn, jobIn, jobPathIn, problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const REFUSED = 'a title that the store refuses'

describe.skipIf(!mongodbCan.refuseByValidator)('a job that can never succeed', () => {
  const refused = () => someThread({ title: REFUSED })
  const broken = refused()
  const claimed = { 'idempotency-key': 'of-a-job-that-fails' }
  let sluice: TestSluice
  let caller: Caller
  let waited: Reply
  let asynchronous: Reply
  let pending: Reply
  let items: Reply[]
  let neighbours: Reply[]
  beforeSuite(async (t) => {
    sluice = await startSluice(t)
    caller = createCaller(sluice)
    await sluice.db.createCollection('sources', { validator: { title: { $ne: REFUSED } } })
    ;[waited, asynchronous, pending, items, neighbours] = await Promise.all([
      caller.post(broken, claimed),
      caller.post(refused(), { prefer: 'respond-async' }),
      caller.post(refused(), { prefer: 'wait=1' }),
      Promise.all([
        caller.postImport(refused()),
        caller.postImport(refused(), { prefer: 'respond-async' }),
      ]),
      Promise.all(Array.from({ length: 20 }, () => caller.post(someThread()))),
    ])
  })

  test('gets its caller a 500 with the id of the job and without internals', async () => {
    const { jobId, detail } = problemIn(waited, 500, 'job_failed')
    assert.match(jobId ?? '', /^[0-9a-f-]{36}$/)
    assert.doesNotMatch(detail, /mongo|valid|127\.0\.0\.1/i)
    assert.doesNotMatch(waited.text, / at .*\.ts|node_modules/)
  })

  test('is described by its id to a caller that waited', async () => {
    const { jobId } = problemIn(waited, 500, 'job_failed')
    const { state, attempts, problem, result } = jobIn(await caller.get(`/jobs/${jobId}`))
    assert.deepEqual([state, attempts, result], ['failed', 5, undefined])
    assert.deepEqual([problem?.code, problem?.status, problem?.jobId], ['job_failed', 500, jobId])
  })

  test('is described by its id to a caller that did not wait', async () => {
    for (const reply of [asynchronous, pending]) {
      acceptedIn(reply)
      const { state, problem } = jobIn(await caller.get(jobPathIn(reply), { prefer: 'wait=20' }))
      assert.deepEqual([state, problem?.code], ['failed', 'job_failed'])
    }
  })

  test('is named by its item in the answer to an import, and in the progress of an asynchronous one', async () => {
    const [stored, accepted] = items
    const [item] = (stored?.text ?? '').split('\n', 1).map((line) => JSON.parse(line))
    const path = accepted?.headers.get('location') ?? ''
    const progress = await until('the import is completed', async () => {
      const found = JSON.parse((await caller.get(path)).text)
      return found.state === 'completed' && found
    })
    for (const { problem } of [item, progress.problems[0]]) {
      assert.equal(problem.code, 'job_failed')
      assert.match(problem.jobId, /^[0-9a-f-]{36}$/)
    }
  })

  test('gives its Idempotency-Key free: the same request gets a new job', async () => {
    const { jobId } = problemIn(waited, 500, 'job_failed')
    const again = await caller.post(broken, { ...claimed, prefer: 'wait=1' })
    acceptedIn(again)
    assert.notEqual(jobPathIn(again), `/jobs/${jobId}`)
  })

  test('does not affect the jobs that were posted with it', () => {
    for (const reply of neighbours) assert.equal(storedIn(reply).source.outcome, 'created')
  })

  test('leaves no document', async () => {
    assert.equal(await sluice.db.collection('sources').countDocuments({ title: REFUSED }), 0)
  })

  test('does not prevent a valid post of the same source', async () => {
    assert.equal(
      storedIn(await caller.post({ ...broken, title: 'fixed' })).source.outcome,
      'created',
    )
  })
})
