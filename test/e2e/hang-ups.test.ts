import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { createKey } from '@sluice/credentials/keys'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { createCaller } from './support/caller.ts'
import { openWire, postHead } from './support/open-wire.ts'
import { storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'
import { untilMetric } from './support/until-metric.ts'

describe('a caller that hangs up leaves nothing behind', () => {
  let sluice: TestSluice
  beforeSuite(async (t) => {
    sluice = await startSluice(t, { workers: 0 })
  })
  const threads = Array.from({ length: 30 }, () => someThread())

  const postAll = () =>
    Promise.all(
      threads.map(async (thread) => {
        const body = JSON.stringify(thread)
        const wire = await openWire(sluice.url)
        await wire.write(
          postHead({ 'x-api-key': sluice.key, 'content-length': body.length }) + body,
        )
        return wire
      }),
    )

  test('callers that hung up no longer count as waiting', async () => {
    const { api } = sluice
    const wires = await postAll()
    await untilMetric(api, 'sluice_awaited_jobs', 30)
    await untilMetric(api, 'sluice_threads_accepted_total', 30)
    for (const { socket } of wires) socket.destroy()
    await untilMetric(api, 'sluice_awaited_jobs', 0)
  })

  test('callers that hang up after a second have waited in vain, and the verdict says so', async () => {
    const { url, db, api } = sluice
    const operator = createCaller({
      url,
      key: (await createKey(db, { role: 'operator', name: 'on call' })).key,
    })
    const wires = await postAll()
    await untilMetric(api, 'sluice_awaited_jobs', 30)
    await pause(1_100) // A proxy that is less patient than WAIT_SECONDS.
    for (const { socket } of wires) socket.destroy()
    const named = /100 % \(\d+ of \d+\) of the callers that waited got no result in time/
    const isNamed = async () => named.test((await operator.get('/admin/overview')).text)
    await until('the verdict names them', isNamed, 10_000)
  })

  test('a caller that hangs up during its body leaves nothing waiting and nothing stored', async () => {
    const { url, key, api } = sluice
    const wire = await openWire(url)
    await wire.write(
      `${postHead({ 'x-api-key': key, 'content-length': 100, expect: '100-continue' })}`,
    )
    await wire.until(/100 Continue/)
    await wire.write('{"title":')
    wire.socket.destroy()
    await api.line(({ msg, status }) => msg === 'request.answered' && status === 'gone')
    await untilMetric(api, 'sluice_awaited_jobs', 0)
  })

  test('the jobs of callers that hung up are stored', async () => {
    const worker = await sluice.startWorker()
    for (const { externalId } of threads) {
      await worker.line((line) => line.msg === 'job.stored' && line.externalId === externalId)
    }
    const { source } = storedIn(await createCaller(sluice).post(threads[0]))
    assert.equal(source.outcome, 'unchanged')
    assert.equal(await sluice.db.collection('sources').countDocuments(), 30)
  })
})
