import assert from 'node:assert/strict'
import { requiredUrl, type StartedProcess } from '@sluice/test-support'
import { test } from 'vitest'
import { adminStatus } from '../support/admin-status.ts'
import { assertStored } from '../support/assert-stored.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { openPrivateServer } from '../support/private-server.ts'
import { prepareSluice } from '../support/start-sluice.ts'
import { BUSY_MS, until } from '../support/until.ts'

/** How soon a process works after a server that was absent is there, in ms. */
const READY_WITHIN_MS = 10_000 + BUSY_MS

for (const { absent, other, code } of [
  { absent: 'Redis', other: 'MONGODB_URL', code: 'queue_unavailable' },
  { absent: 'MongoDB', other: 'REDIS_URL', code: 'keys_unavailable' },
] as const) {
  test(`an API and a worker that start while ${absent} is absent live, refuse, and work as soon as it is there`, async (t) => {
    const server = await openPrivateServer(absent, requiredUrl(other))
    t.onTestFinished(server.end)
    const url = absent === 'Redis' ? { redisUrl: server.url } : { mongodbUrl: server.url }
    const { startApi, startWorker, key, db } = await prepareSluice(t, url)
    await server.kill()

    const { api, url: apiUrl } = await startApi()
    const worker = await startWorker()
    const target = { url: apiUrl, key }
    for (const process of [api, worker]) assert.equal(await adminStatus(process, '/livez'), 200)
    assert.equal(await adminStatus(worker, '/readyz'), 503)
    const refused = await postThread(target, aThread())
    assert.deepEqual([refused.status, refused.body.code], [503, code])

    await server.startAgain()
    await Promise.all([api, worker].map(untilReady))
    const posted: Posted[] = [refused]
    // A replica asks for an unseen key again after a moment.
    await until(
      'a thread is stored',
      async () => {
        posted.push(await postThread(target, aThread()))
        return posted.at(-1)?.status === 200
      },
      READY_WITHIN_MS,
    )
    await assertStored(db, posted)
    if (absent === 'MongoDB') return
    for (const process of [api, worker]) {
      await process.line(({ msg }) => msg === 'redis.recovered')
      const errors = process.log.filter(({ msg = '' }) => /^(redis|queue)\./.test(String(msg)))
      assert(errors.length < 5, `${errors.length} lines about Redis`)
    }
  })
}

async function untilReady(process: StartedProcess): Promise<void> {
  await until(
    'the process is ready',
    async () => (await adminStatus(process, '/readyz')) === 200,
    READY_WITHIN_MS,
  )
}
