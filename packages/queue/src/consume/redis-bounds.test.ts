import assert from 'node:assert/strict'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { it, type TestContext } from 'vitest'
import { createImports } from '../imports/imports.ts'
import type { CompletedJob } from '../job/job.ts'
import { queueKeys } from '../job/lanes.ts'
import { createLoadAudit } from '../load/load-copy.ts'
import { BOUNDS, completed, createCompleteJobs, createJobAdder } from '../queue.test-support.ts'
import { createResults } from '../replies/results.ts'

const BYTES = 500_000
/**
 * Redis keeps a result or an import in structures that grow by doubling, so its share of them
 * differs from one to another.
 */
const SLACK = 1.15

function setUp(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  const keys = queueKeys(testQueueName())
  const found = async (name: string) =>
    (await redis.keys(`${keys.base.replace('{', '\\{')}*`)).filter((key) =>
      key.startsWith(keys.base + name),
    )
  t.onTestFinished(async () => {
    const left = await found('')
    if (left.length > 0) await redis.unlink(...left)
    redis.disconnect()
  })
  return {
    redis,
    keys,
    found,
    complete: createCompleteJobs(redis, keys, {
      ...BOUNDS,
      resultBytes: BYTES,
      recentBytes: BYTES,
    }),
    /** Returns the bytes of the keys whose names begin with one of these. */
    async bytesOf(...names: string[]): Promise<number> {
      const all = (await Promise.all(names.map(found))).flat()
      const pipeline = redis.pipeline()
      for (const key of all) pipeline.call('MEMORY', 'USAGE', key, 'SAMPLES', '0')
      return ((await pipeline.exec()) ?? []).reduce((sum, [, bytes]) => sum + Number(bytes), 0)
    },
  }
}

/** Jobs whose results have about `bytes` each. */
function jobs(
  from: number,
  count: number,
  bytes: number,
  more: Parameters<typeof completed>[1] = {},
): CompletedJob[] {
  return Array.from({ length: count }, (_, at) =>
    completed(`00000000-0000-7000-8000-${String(from + at).padStart(12, '0')}`, {
      result: { receipts: [], failure: 'x'.repeat(bytes) },
      ...more,
    }),
  )
}

it('keeps results of any size and kind within their bound', async (t) => {
  const { redis, keys, complete, bytesOf } = setUp(t)
  let done = 0
  for (const bytes of [1, 2_000]) {
    for (const retained of [true, false]) {
      for (let left = (2 * BYTES) / (bytes + 500); left > 0; left -= 200) {
        const some = jobs(done, 200, bytes, { data: { retained }, result: { receipts: [] } })
        const pipeline = redis.pipeline()
        for (const { id } of some)
          pipeline.hset(`${keys.jobs.interactive}${id}`, 'data', 'x'.repeat(bytes))
        await pipeline.exec()
        await complete(retained ? some : jobs(done, 200, bytes))
        await redis.unlink(...some.map(({ id }) => `${keys.jobs.interactive}${id}`))
        done += 200
      }
      const used = await bytesOf('results:', 'transient', 'newest-results', 'retained')
      const newest = 200 * (bytes + 500)
      assert(used < (BYTES + newest) * SLACK, `${used} bytes of results with ${bytes} bytes each`)
    }
  }
})

it('keeps the reply stream of a frozen replica within its bound', async (t) => {
  const { complete, bytesOf } = setUp(t)
  for (const bytes of [20, 4_000]) {
    for (let at = 0; at < 30; at++)
      await complete(jobs(at * 200, 200, bytes, { data: { replyTo: `frozen-${bytes}` } }))
    const used = await bytesOf(`replies:frozen-${bytes}`)
    assert(used > 0 && used < 17 * 1024 * 1024, `${used} bytes of replies with ${bytes} bytes each`)
  }
})

it('keeps imports within their bound, finished ones first to go', async (t) => {
  const { redis, keys, found, bytesOf } = setUp(t)
  const imports = createImports(redis, keys, BYTES)
  const about = { tenant: 't', received: 1, refused: [], failed: 0 }
  await imports.open('unfinished', { ...about, jobs: 1 })
  for (const problems of [0, 50]) {
    const failed = {
      source: { service: 'custom', externalId: 'x'.repeat(500), title: 'A' },
      quotes: [],
    } as const
    const threads = Array(problems).fill(failed)
    for (let at = 0; at < 200; at++) {
      const id = `00000000-0000-7000-8000-${String(at + problems).padStart(12, '0')}`
      const data = { threads, import: { id, places: [...threads.keys()] } }
      for (let job = 0; job < 5; job++) await imports.recordJob(completed(`${id}-${job}`, { data }))
      await imports.open(id, { ...about, jobs: 5 })
    }
    const used = await bytesOf('import')
    assert(used < BYTES * SLACK, `${used} bytes of imports with ${problems} problems a job`)
  }
  assert.notEqual(await imports.find('unfinished'), undefined)
  assert((await found('import:')).length < 200)
})

it('evicts the imports of the tenant that has the most, and none of the others; lists those of all', async (t) => {
  const { redis, keys } = setUp(t)
  const imports = createImports(redis, keys, BYTES)
  const refused = [{ index: 0, externalId: 'x'.repeat(BYTES / 4) }]
  const about = { received: 1, failed: 1, jobs: 0 }
  await imports.open('small', { ...about, tenant: 'quiet', refused: [] })
  for (let at = 0; at < 8; at++)
    await imports.open(`large-${at}`, { ...about, tenant: 'loud', refused })
  assert.deepEqual((await imports.list()).map(({ id }) => id).toSorted(), [
    'large-5',
    'large-6',
    'large-7',
    'small',
  ])
  assert.notEqual(await imports.find('small'), undefined)
  assert.equal(await imports.find('large-0'), undefined)
})

it('marks a job for its result only while the job exists, and the mark goes with it', async (t) => {
  const { redis, keys, found } = setUp(t)
  const results = createResults(redis, keys)
  await results.retainResult('gone')
  assert.deepEqual(await found(''), [])
  assert.equal(await redis.exists(`${keys.jobs.interactive}gone`, `${keys.jobs.bulk}gone`), 0)
  const threads = [
    { source: { service: 'custom', externalId: 'a', title: 'A' } as const, quotes: [] },
  ]
  const job = { tenant: 't', requestId: 'r', retained: false, threads }
  await createJobAdder(redis, keys)({ id: 'there', lane: 'bulk', job })
  await results.retainResult('there')
  assert.equal((await redis.hkeys(`${keys.jobs.bulk}there`)).includes('load'), false)
  assert.deepEqual((await found('')).sort(), [`${keys.base}load`, `${keys.base}load:jobs`])
  await redis.del(`${keys.jobs.bulk}there`)
  await createLoadAudit(redis, keys)()
  assert.deepEqual(await found(''), [`${keys.base}load`])
})
