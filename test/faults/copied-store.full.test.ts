import assert from 'node:assert/strict'
import { startProcess, testQueueName } from '@sluice/test-support'
import { test } from 'vitest'
import { openOperator } from '../support/open-operator.ts'
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

  const misspelt = testQueueName()
  const { api: ofOtherQueue } = await sluice.startApi({ QUEUE: misspelt })
  const isOtherQueue = (text: string) =>
    text.startsWith(`The queue ${misspelt} feeds the same MongoDB`)
  await until('the other queue', async () => (await readVerdict()).some(isOtherQueue))
  ofOtherQueue.signal('SIGKILL')
  await ofOtherQueue.ended
  await until('its end', async () => !(await readVerdict()).some(isOtherQueue))

  // What a database has that was copied, or restored from its dump.
  await layout.updateMany({ mark: { $exists: true } }, { $inc: { mark: -60_000, before: -60_000 } })
  const worker = startProcess(t, 'apps/worker/src/main.ts', sluice.settings)
  const { err } = await worker.line(({ msg }) => msg === 'process.start_failed')
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
