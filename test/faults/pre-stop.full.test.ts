import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'vitest'
import { parse } from 'yaml'
import { assertStored } from '../support/assert-stored.ts'
import { startBalancer } from '../support/balancer.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { startSluice } from '../support/start-sluice.ts'

const LATE_MS = 5_000
const values = new URL('../../deploy/helm/sluice/values.yaml', import.meta.url)

test('with the preStop of the chart, a balancer that learns of a stop 5 s late fails no request', async (t) => {
  const { preStopSeconds } = parse(await readFile(values, 'utf8'))
  const sluice = await startSluice(t)
  const { drained } = openQueue(t, sluice.settings)
  const balancer = await startBalancer(t)
  for (const backend of [sluice, await sluice.startApi()]) await balancer.add(backend)
  // Kept connections are told to close; new ones show whether the balancer leads to a replica that
  // is gone.
  const loads = ([undefined, 'close'] as const).map((connection) =>
    postSteadily(t, { url: balancer.url, key: sluice.key, connection }, { callers: 4 }),
  )
  const moreStored = () => Promise.all(loads.map((load) => load.moreStored(20)))
  await moreStored()

  // Kubernetes removes the endpoint and runs preStop at the same time; SIGTERM comes after preStop.
  const removed = balancer.removeAfter(sluice, LATE_MS)
  await pause(preStopSeconds * 1_000)
  sluice.api.signal('SIGTERM')
  assert.deepEqual(await sluice.api.ended, { code: 0, signal: null })
  await removed
  await moreStored()
  const posted = (await Promise.all(loads.map((load) => load.stop()))).flat()
  await drained()
  assert.deepEqual(
    posted.filter(({ status }) => status !== 200).map(({ status, body }) => ({ status, ...body })),
    [],
  )
  await assertStored(sluice.db, posted)
})
