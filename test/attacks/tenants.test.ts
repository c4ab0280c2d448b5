// Attacks by one tenant on another: ids of jobs and imports that were guessed or overheard.
import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { connectRetrying } from '@sluice/process/redis'
import { newJobId } from '@sluice/queue'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type Caller, createCaller, type Reply } from '../e2e/support/caller.ts'
import { acceptedIn, jobIn, jobPathIn, problemIn, storedIn } from '../e2e/support/read-reply.ts'
import { someThread } from '../e2e/support/some-thread.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { assertUnharmed } from './support/unharmed.ts'

/** Names that could run into a key, a pattern or a field, were they used as such. */
const TENANTS = [
  'globex',
  'acme:',
  'a',
  'acm*',
  '{acme}',
  '$acme',
  '__proto__',
  'constructor',
  'threads',
  'ACME',
  'acme\u0301',
]

describe("with another tenant's key", () => {
  let sluice: TestSluice
  let acme: Caller
  const strangers: Caller[] = []
  /** The paths of what acme has: jobs and imports that are done, and others that wait. */
  const paths = { done: [] as string[], waiting: [] as string[] }

  beforeSuite(async (t) => {
    sluice = await startSluice(t)
    acme = createCaller(sluice)
    for (const tenant of TENANTS) {
      const { key } = await createKey(sluice.db, { tenant, name: 'stranger' })
      strangers.push(createCaller({ url: sluice.url, key }))
    }
    paths.done.push(await postJob(), await postImport())
    await acme.get(paths.done[0] ?? '', { prefer: 'wait=20' })
    for (const worker of sluice.workers) {
      worker.signal('SIGTERM')
      await worker.ended
    }
    paths.waiting.push(await postJob(), await postImport())
  })

  async function postJob(): Promise<string> {
    const reply = await acme.post(someThread(), { prefer: 'respond-async' })
    acceptedIn(reply)
    return reply.headers.get('location') ?? ''
  }
  async function postImport(): Promise<string> {
    const reply = await acme.postImport(someThread(), { prefer: 'respond-async' })
    assert.equal(reply.status, 202)
    return reply.headers.get('location') ?? ''
  }
  const codeOf = (path: string) => (path.startsWith('/jobs') ? 'job_unknown' : 'import_unknown')
  const all = () => [...paths.done, ...paths.waiting]

  test('its own tenant finds each of them', async () => {
    for (const path of all()) assert.equal((await acme.get(path)).status, 200)
  })

  test('a job or an import gets the answer of an unknown id, in every state', async () => {
    for (const path of all()) {
      const never = bareOf(await acme.get(`${path.slice(0, -12)}000000000000`), path)
      for (const stranger of strangers) {
        const reply = await stranger.get(path)
        problemIn(reply, 404, codeOf(path))
        assert.deepEqual(bareOf(reply, path), never)
        assert.equal((await stranger.send(path, { method: 'HEAD' })).status, 404)
      }
    }
  })

  test('a wait for a foreign job ends at once, like a wait for an unknown one', async () => {
    const [path = ''] = paths.waiting
    const began = performance.now()
    problemIn(await (strangers[0] ?? acme).get(path, { prefer: 'wait=20' }), 404, 'job_unknown')
    assert.ok(performance.now() - began < 5_000)
  })

  test('the id of a job names no import, and the id of an import no job', async () => {
    const [job = '', batch = ''] = paths.done
    problemIn(await acme.get(job.replace('/jobs/', '/batches/')), 404, 'import_unknown')
    problemIn(await acme.get(batch.replace('/batches/', '/jobs/')), 404, 'job_unknown')
  })

  test('the same externalIds make documents of its own, and the answer shows nothing of the other tenant', async () => {
    sluice.workers = [await sluice.startWorker()]
    const secret = {
      description: 'secret',
      url: 'secret',
      quotes: [{ text: 'secret', externalId: 'q' }],
    }
    const thread = someThread({ externalId: 'shared' })
    const ours = storedIn(await acme.post({ ...thread, ...secret }))
    for (const stranger of strangers) {
      const reply = await stranger.post({
        ...thread,
        quotes: [{ text: 'b', externalId: 'r', replyingTo: 'q' }],
      })
      const theirs = storedIn(reply)
      assert.deepEqual(
        [theirs.source.outcome, theirs.quotes[0]?.outcome, theirs.source.wordCount],
        ['created', 'created', 1],
      )
      assert.notEqual(theirs.source.id, ours.source.id)
      assert.doesNotMatch(reply.text, /secret/)
    }
  })

  test('no name of a tenant makes a key of another tenant, whatever the order of their posts', async (t) => {
    const redis = connectRetrying(
      { redisUrl: sluice.settings.REDIS_URL ?? '', queue: '' },
      () => {},
    )
    t.onTestFinished(() => redis.disconnect())
    async function callerOf(tenant: string): Promise<Caller> {
      return createCaller({
        url: sluice.url,
        key: (await createKey(sluice.db, { tenant, name: 'posts' })).key,
      })
    }
    /**
     * Posts in each way that makes keys of a tenant: a claim, a retained result, and both kinds of
     * imports.
     */
    async function postInAllWays(caller: Caller): Promise<void> {
      const [thread, idempotency] = [someThread(), { 'idempotency-key': newJobId() }]
      const first = storedIn(await caller.post(thread, idempotency))
      assert.deepEqual(storedIn(await caller.post(thread, idempotency)), first)
      const accepted = await caller.post(someThread(), { prefer: 'respond-async' })
      assert.equal(
        jobIn(await caller.get(jobPathIn(accepted), { prefer: 'wait=30' })).state,
        'completed',
      )
      const importId = newJobId()
      assert.equal((await caller.postImport(someThread(), { 'import-id': importId })).status, 200)
      const later = await caller.postImport(someThread(), { prefer: 'respond-async' })
      for (const path of [`/batches/${importId}`, later.headers.get('location') ?? ''])
        await until('the import is recorded', async () =>
          /(?=.*"created":1).*"completed"/.test((await caller.get(path)).text),
        )
    }

    const zed = await callerOf('zed')
    await postInAllWays(zed)
    const prefix = `{${sluice.settings.QUEUE}}:`
    const keys = await redis.keys(`${prefix}*`)
    const ofZed = keys.flatMap((key) =>
      key
        .slice(prefix.length)
        .split(/(?<=:)(?=zed(?::|$))/)
        .slice(1),
    )
    const names = [...new Set(ofZed)].sort()
    assert.deepEqual(names, ['zed', 'zed:age', 'zed:bytes'])
    const suffixes = [...names.slice(1), ':', '%3Aage'].map((name) => name.replace('zed', ''))
    for (const suffix of suffixes) await postInAllWays(await callerOf(`zed${suffix}`))
    await postInAllWays(zed)
    for (const suffix of suffixes) await postInAllWays(await callerOf(`amy${suffix}`))
    await postInAllWays(await callerOf('amy'))
    await postInAllWays(acme)
    await assertUnharmed(sluice)
  })
})

/** An answer without what names the request and the id. */
function bareOf({ status, text }: Reply, path: string): unknown {
  const { requestId: _, instance: __, ...rest } = JSON.parse(text)
  return { status, path: path.split('/')[1], ...rest }
}
