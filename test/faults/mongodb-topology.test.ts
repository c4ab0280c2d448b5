import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { hasContainers, startReplicaSet, startSharded } from './mongodb-topology.ts'

const TIME_LIMIT_MS = 300_000
const POSTS = 300

describe.runIf(hasContainers)('a MongoDB of several servers', () => {
  for (const fault of ['stepDown', 'killPrimary'] as const) {
    test(`stores everything, and no job uses an attempt, when a primary of three members goes (${fault})`, {
      timeout: TIME_LIMIT_MS,
    }, async (t) => {
      const mongodb = await startReplicaSet(t)
      const sluice = await startSluice(t, { workers: 2, mongodbUrl: mongodb.url })
      const { queue, bulk, drained } = openQueue(t, sluice.settings)
      const load = postSteadily(t, sluice, { callers: 16, prefer: () => 'respond-async' })
      await until('a third of the posts', () => load.posted.length > POSTS / 3)
      await mongodb[fault]()
      await until('all posts', () => load.posted.length > POSTS, TIME_LIMIT_MS)
      const posted = await load.stop()
      await drained()
      assert.deepEqual(statusesOf(posted), [202])
      assert.deepEqual([await queue.getFailedCount(), await bulk.getFailedCount()], [0, 0])
      const tries = sluice.workers.flatMap(({ log }) =>
        log.filter(({ msg }) => msg === 'job.try_failed'),
      )
      assert.deepEqual(tries, [])
      await assertStored(sluice.db, posted, { afterCrash: true })
    })
  }

  test('splits threads over shards by the commands of docs/operate/mongodb.md, and stops while one is unavailable', {
    timeout: TIME_LIMIT_MS,
  }, async (t) => {
    const mongodb = await startSharded(t)
    const sluice = await startSluice(t, { mongodbUrl: mongodb.url })
    const { queue, drained } = openQueue(t, sluice.settings)
    const manual = await readFile(new URL('../../docs/operate/mongodb.md', import.meta.url), 'utf8')
    const script = /```js\n(const digits =.*?)```/s.exec(manual)?.[1] ?? ''
    await mongodb.runScript(script.replaceAll('sluice', sluice.db.databaseName))
    const post = (prefer?: string) =>
      Promise.all(
        Array.from({ length: 40 }, () => postThread(sluice, aThread({ quotes: 5 }), prefer)),
      )
    const first = await post()
    assert.deepEqual(statusesOf(first), [200])
    for (const name of ['sources', 'quotes']) {
      const shards = await sluice.db
        .collection(name)
        .aggregate([{ $collStats: { count: {} } }])
        .toArray()
      assert.equal(shards.filter(({ count }) => count > 0).length, 2, name)
    }

    await mongodb.shards[1]?.freeze()
    const meanwhile = await post('respond-async')
    await sluice.workers[0]?.line(({ msg }) => msg === 'store.lost')
    await sluice.workers[0]?.line(({ msg }) => msg === 'store.probe_failed')
    for (const job of await queue.getJobs(['wait', 'active'])) assert.equal(job.attemptsMade, 0)
    await mongodb.shards[1]?.thaw()
    await drained()
    assert.equal(await queue.getFailedCount(), 0)
    await assertStored(sluice.db, [...first, ...meanwhile], { afterCrash: true })
  })
})
