import assert from 'node:assert/strict'
import type { ThreadAnswer } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { until } from '../support/until.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { jobIn, jobPathIn, problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

/** A thread whose request determines its whole answer, except ids and outcomes. */
const rich = (changes = {}) =>
  someThread({
    createdAt: '2024-05-01',
    description: 'About keyboards',
    upVotes: 5,
    quotes: [
      { text: 'a', username: 'ada', createdAt: '2024-05-01T10:00+02:00', externalId: 'q1' },
      { text: 'b' },
      { text: 'b', downVotes: 2 },
    ],
    ...changes,
  })

/** An answer without the parts that differ between two tenants' first posts. */
const bare = ({ source: { id: _, ...source }, quotes }: ThreadAnswer) => ({
  source,
  quotes: quotes.map(({ id: _, ...quote }) => quote),
})

describe('GET /jobs describes a job to the caller that has its id', () => {
  let sluice: SharedSluice
  let caller: Caller
  let other: Caller
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    caller = createCaller(sluice)
    other = createCaller({
      url: sluice.url,
      key: (await createKey(sluice.db, { tenant: 'globex', name: 'jobs' })).key,
    })
  })
  const postAsync = async (body: unknown) =>
    jobPathIn(await caller.post(body, { prefer: 'respond-async' }))

  test('a completed job has the body that a waiting caller would have got', async () => {
    const thread = rich()
    const { result, ...job } = jobIn(
      await caller.get(await postAsync(thread), { prefer: 'wait=20' }),
    )
    assert.ok(result !== undefined)
    assert.deepEqual(Object.keys(job).sort(), ['attempts', 'changedAt', 'id', 'state'])
    assert.deepEqual([job.state, job.attempts], ['completed', 1])
    const waited = storedIn(await other.post(thread))
    assert.equal(result.message, waited.message)
    assert.deepEqual(bare(result), bare(waited))
    assert.deepEqual(Object.keys(result.source), Object.keys(waited.source))
    const again = storedIn(await caller.post(thread))
    assert.deepEqual(
      [again.source.id, again.quotes.map(({ id }) => id)],
      [result.source.id, result.quotes.map(({ id }) => id)],
    )
  })

  test("changedAt is the time of the job's last change of state", async () => {
    const before = Date.now()
    const { changedAt } = jobIn(await caller.get(await postAsync(rich()), { prefer: 'wait=20' }))
    assert.ok(
      Date.parse(changedAt) >= before - 5 && Date.parse(changedAt) <= Date.now() + 5,
      changedAt,
    )
    assert.match(changedAt, /\.\d{3}Z$/)
  })

  test('the result of a job does not change when the source is posted again', async () => {
    const thread = rich()
    const path = await postAsync(thread)
    const first = jobIn(await caller.get(path, { prefer: 'wait=20' }))
    storedIn(await caller.post({ ...thread, title: 'Another title' }))
    assert.deepEqual(jobIn(await caller.get(path)), first)
  })

  test('HEAD answers 200 for a job that exists', async () => {
    assert.equal((await caller.send(await postAsync(rich()), { method: 'HEAD' })).status, 200)
  })

  test('a large answer charges the quota, and gets a 429 while that is used up; a small one does not', async () => {
    const large = rich({ quotes: Array.from({ length: 400 }, () => ({ text: 'é'.repeat(500) })) })
    const [path, small] = [await postAsync(large), await postAsync(rich())]
    for (const job of [path, small]) jobIn(await caller.get(job, { prefer: 'wait=20' }))
    const limits = { quotesPerSecond: 1, burstQuotes: 300 }
    const { key } = await createKey(sluice.db, {
      tenant: sluice.tenant,
      name: 'limited reads',
      limits,
    })
    const limited = createCaller({ url: sluice.url, key })
    // The tenant reads one large answer at a time, with a pause: until then, it gets a 503.
    await until('it is read', async () => (await limited.get(path)).status === 200)
    await until('the quota is used up', async () => (await limited.get(path)).status === 429)
    assert.match(problemIn(await limited.get(path), 429, 'rate_limited').title, /Quota/)
    jobIn(await limited.get(small))
  })

  test("another tenant's key gets the same 404 as for a job that never existed", async () => {
    const path = await postAsync(rich())
    jobIn(await caller.get(path, { prefer: 'wait=20' }))
    const foreign = problemIn(await other.get(path), 404, 'job_unknown')
    const never = problemIn(
      await other.get('/jobs/01900000-0000-7000-8000-000000000000'),
      404,
      'job_unknown',
    )
    const bareOf = ({ instance: _, requestId: __, ...rest }: typeof foreign) => rest
    assert.deepEqual(bareOf(foreign), bareOf(never))
    problemIn(await other.get(path, { prefer: 'wait=20' }), 404, 'job_unknown')
  })

  test('another key of the same tenant finds the job', async () => {
    const { key } = await createKey(sluice.db, { tenant: sluice.tenant, name: 'second' })
    jobIn(await createCaller({ url: sluice.url, key }).get(await postAsync(rich())))
  })

  for (const id of [
    '1',
    'x'.repeat(2_000),
    '01900000-0000-7000-8000-00000000000',
    '__proto__',
    '%00',
    '%F0%9F%8E%B9',
    '*',
    '..%2f..',
    '{}:stamp',
  ]) {
    test(`the unknown job ${id.slice(0, 40)} gets a 404`, async () => {
      problemIn(await caller.get(`/jobs/${id}`), 404, 'job_unknown')
    })
  }

  test('a caller without a key gets a 403', async () => {
    problemIn(
      await createCaller(sluice).get(await postAsync(rich()), { 'x-api-key': '' }),
      403,
      'api_key_invalid',
    )
  })
})
