import assert from 'node:assert/strict'
import { startProcess, testQueueName } from '@sluice/test-support'
import { test } from 'vitest'
import { openOperator } from '../support/open-operator.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { runSluice } from '../support/run-sluice.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

test('a second Redis with the same queue is told as such, and a MongoDB that was restored or copied is refused', async (t) => {
  const sluice = await startSluice(t)
  const { key, readVerdict } = await openOperator(sluice)
  const layout = sluice.db.collection('layout')
  await until('a mark', () => layout.findOne({ mark: { $gt: 0 } }))

  const { api: other } = await sluice.startApi({ REDIS_URL: `${sluice.settings.REDIS_URL}/1` })
  const isOther = (text: string) =>
    text.startsWith('A queue of the same name in another Redis feeds this MongoDB')
  await until('the other Redis', async () => (await readVerdict()).some(isOther))
  assert.doesNotMatch((await readVerdict()).join(), /post again what/)
  for (const { log } of [sluice.api, other])
    assert.equal(
      log.some(({ msg }) => msg === 'redis.lost'),
      false,
    )
  other.signal('SIGKILL')
  await other.ended

  const names = sluice.db.collection<{ _id: string }>('layout')
  const abandoned = { _id: 'queue:abandoned', mark: 1, threads: 7, failed: 0 }
  await names.insertOne(abandoned)
  const misspelt = { QUEUE: testQueueName() }
  const ofOtherQueue = await sluice.startApi(misspelt)
  const says = async (start: string) => (await readVerdict()).some((text) => text.startsWith(start))
  const isUsed = () => says(`The queue ${misspelt.QUEUE} feeds the same MongoDB`)
  const isLeft = () => says(`The queue ${misspelt.QUEUE} had 1 waiting and 0 failed threads`)
  await until('the other queue, although one that was left came first', isUsed)
  await names.deleteOne({ _id: abandoned._id })
  await postThread({ ...ofOtherQueue, key: sluice.key }, aThread(), 'respond-async')
  await until('a mark with its thread', () => layout.findOne({ threads: 1 }))
  ofOtherQueue.api.signal('SIGKILL')
  await ofOtherQueue.api.ended
  await until('the queue that was left', isLeft)
  const [{ api: again }, worker] = await Promise.all([
    sluice.startApi(misspelt),
    sluice.startWorker(misspelt),
  ])
  await worker.line(({ msg }) => msg === 'job.stored')
  await until('no thread is left', async () => !(await layout.findOne({ threads: 1 })))
  for (const process of [again, worker]) process.signal('SIGKILL')
  await Promise.all([again.ended, worker.ended])
  await until('its end', async () => !((await isUsed()) || (await isLeft())))

  // What a database has that was copied, or restored from its dump.
  await layout.updateMany({ mark: { $exists: true } }, { $inc: { mark: -60_000, before: -60_000 } })
  const refused = startProcess(t, 'apps/worker/src/main.ts', sluice.settings)
  const { err } = await refused.line(({ msg }) => msg === 'process.start_failed')
  assert.match(
    Object(err).message,
    /has its state of .*, or is a copy made then, and the queue .* has fed it until /,
  )
  const settings = { ...sluice.settings, SLUICE_API_KEY: key }
  const reports = Promise.all([
    runSluice({ settings }, 'doctor'),
    runSluice({ settings }, 'status', '--url', 'http://127.0.0.1:9'),
  ])
  for (const process of [sluice.api, ...sluice.workers]) {
    await process.line(({ msg }) => msg === 'store.refused')
    assert.deepEqual(await process.ended, { code: 0, signal: null })
  }
  const [doctor, status] = await reports
  assert.match(doctor.stdout, /FAULT .* or is a copy made then/)
  assert.equal(doctor.code, 1)
  assert.match(status.stdout, /The (worker|api) .* stopped .* or is a copy made then/)
})
