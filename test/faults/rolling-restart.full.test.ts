import assert from 'node:assert/strict'
import type { StartedProcess } from '@sluice/test-support'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { startBalancer } from '../support/balancer.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { startSluice } from '../support/start-sluice.ts'

const REPLICAS = 2

test('a rolling restart of every API and worker replica under load, behind a balancer that follows /readyz, fails no request', async (t) => {
  const sluice = await startSluice(t, { workers: REPLICAS })
  const { drained } = openQueue(t, sluice.settings)
  const apis = [sluice, await sluice.startApi()]
  const workers = [...sluice.workers]
  const balancer = await startBalancer(t)
  for (const backend of apis) await balancer.add(backend)
  const load = postSteadily(t, { url: balancer.url, key: sluice.key }, { callers: 8 })
  await load.moreStored(30)

  for (let restart = 0; restart < REPLICAS; restart++) {
    const [next, worker] = await Promise.all([sluice.startApi(), sluice.startWorker()])
    await balancer.add(next)
    apis.push(next)
    workers.push(worker)
    await stop(apis.shift()?.api)
    await stop(workers.shift())
    await load.moreStored(30)
  }
  const posted = await load.stop()
  await drained()
  const failed = posted.filter(({ status }) => status !== 200)
  await t.annotate(`${posted.length} posts, ${failed.length} failed`)
  assert.deepEqual(
    failed.map(({ status, body }) => ({ status, ...body })),
    [],
  )
  await assertStored(sluice.db, posted)
})

async function stop(process: StartedProcess | undefined): Promise<void> {
  process?.signal('SIGTERM')
  assert.deepEqual(await process?.ended, { code: 0, signal: null })
}
