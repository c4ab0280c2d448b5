import assert from 'node:assert/strict'
import type { Status } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { startProcess } from '@sluice/test-support'
import { test } from 'vitest'
import { runSluice } from '../support/run-sluice.ts'
import { startSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

test('a second Redis with the same queue is told as such, and a MongoDB that was restored or copied is refused', async (t) => {
  const sluice = await startSluice(t)
  const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
  await untilKeyIsKnown(sluice.url, key)
  const verdict = async () => {
    const answer = await fetch(`${sluice.url}/admin/overview`, { headers: { 'x-api-key': key } })
    const { verdict = [] }: Status = JSON.parse(await answer.text())
    return verdict.map(({ code, text }) => `${code}: ${text}`).join('\n')
  }
  const layout = sluice.db.collection('layout')
  await until('a mark', () => layout.findOne({ mark: { $gt: 0 } }))

  const { api: other } = await sluice.startApi({ REDIS_URL: `${sluice.settings.REDIS_URL}/1` })
  const told = await until('the other Redis', async () => /redis_unfit: .*/.exec(await verdict())?.[0])
  assert.match(told, /A queue of the same name in another Redis/)
  assert.equal(
    sluice.api.log.some(({ msg }) => msg === 'redis.lost'),
    false,
  )
  assert.doesNotMatch(await verdict(), /redis_lost/)
  other.signal('SIGKILL')
  await other.ended

  // What a database has that was copied, or restored from its dump.
  await layout.updateMany({ mark: { $exists: true } }, { $inc: { mark: -60_000, before: -60_000 } })
  const worker = startProcess(t, 'apps/worker/src/main.ts', sluice.settings)
  const { err } = await worker.line(({ msg }) => msg === 'process.start_failed')
  assert.match(Object(err).message, /has its state of .*, or is a copy made then, and the queue .* has fed it until /)
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
