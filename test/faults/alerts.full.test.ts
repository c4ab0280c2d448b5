import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl } from '@sluice/test-support'
import { afterAll, beforeAll, test } from 'vitest'
import { isMissing, needs } from '../runner/programs.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { startPrometheus } from '../support/start-prometheus.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

// Each alert fires once by a real fault, and rests when the fault is over. Needs some minutes, so
// it runs in the full form.

let redis: PrivateServer
let mongodb: PrivateServer
const runs = !isMissing('prometheus')

beforeAll(async () => {
  if (!runs) return
  redis = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
  mongodb = await openPrivateServer('MongoDB', requiredUrl('REDIS_URL'))
})
afterAll(async () => {
  await redis?.end()
  await mongodb?.end()
})

const MOST_THREADS = 600

test('each alert fires by a real fault', needs('prometheus'), async (t) => {
  const settings = {
    MAX_QUEUE_THREADS: String(MOST_THREADS),
    TENANT_SHARE: '1',
    MAX_WAITING_SECONDS: '3600',
    WAIT_SECONDS: '3',
  }
  const sluice = await startSluice(t, { redisUrl: redis.url, mongodbUrl: mongodb.url, settings })
  const [first] = sluice.workers
  assert(first)
  const second = await sluice.startWorker()
  const prometheus = await startPrometheus(t, [sluice.api, first, second])
  const fires = (...alerts: string[]) =>
    until(`${alerts} fire`, async () => {
      const firing = await prometheus.firing()
      return alerts.every((alert) => firing.includes(alert))
    })
  const rests = () => until('no alert fires', async () => (await prometheus.firing()).length === 0)
  const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
  const pauseLane = async (act: 'pause' | 'resume') => {
    const request = { method: 'POST', headers: { 'x-api-key': key } }
    assert.equal((await fetch(`${sluice.url}/admin/lanes/bulk:${act}`, request)).status, 200)
  }
  const post = (quotes = 1) => postThread(sluice, aThread({ quotes }), 'respond-async')

  // MongoDB refuses a document, in all five tries of its job.
  await postThread(sluice, aThread())
  await sluice.db.command({ collMod: 'quotes', validator: { text: { $ne: 'refused' } } })
  await postThread(sluice, aThread({ text: 'refused' }), 'respond-async')
  await fires('SluiceThreadsFail')
  await rests()

  await pauseLane('pause')
  await fires('SluiceLanePaused')
  await pauseLane('resume')
  await rests()

  await mongodb.kill()
  await post()
  await fires('SluiceStoreAway')
  await mongodb.startAgain()
  await rests()

  mongodb.slow(1_500)
  await fires('SluiceStoreSlow')
  mongodb.slow(0)
  await rests()

  await redis.kill()
  await fires('SluiceQueueAway')
  await redis.startAgain()
  await rests()

  // Workers that hang store nothing, until the queue is full.
  const waits = postThread(sluice, aThread())
  for (const worker of [first, second]) worker.signal('SIGSTOP')
  const calling = { stopped: false }
  const callers = (async () => {
    while (!calling.stopped) await postThread(sluice, aThread())
  })()
  await fires('SluiceCallersTimeOut')
  calling.stopped = true
  await callers
  const posting = { stopped: false }
  const load = (async () => {
    while (!posting.stopped) await Promise.all(Array.from({ length: 20 }, () => post()))
  })()
  await fires('SluiceDrainsTooSlowly', 'SluiceRefusesRequests', 'SluiceProcessGone')
  void postThread(sluice, aThread())
  await fires('SluiceJobsTooOld')
  posting.stopped = true
  await load
  for (const worker of [first, second]) worker.signal('SIGCONT')
  await waits
  await rests()

  // A worker that is stopped for good, before and after it is removed from the targets.
  second.signal('SIGTERM')
  await fires('SluiceProcessGone')
  await prometheus.setTargets([sluice.api, first])
  await rests()

  // Last, because it fires for an hour.
  const client = connectRetrying({ redisUrl: redis.url, queue: '' }, () => {})
  await client.flushall()
  client.disconnect()
  await fires('SluiceRedisLostData')
})
