import assert from 'node:assert/strict'
import { requiredUrl } from '@sluice/test-support'
import { test } from 'vitest'
import { adminStatus } from '../support/admin-status.ts'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openOperator } from '../support/open-operator.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, deleteThread, postThread } from '../support/post-thread.ts'
import { residentBytes } from '../support/resident-bytes.ts'
import { startSluice } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

const SLOW_MS = 2_000
const QUICK_MS = 1_000
const MEMORY_BYTES = 400 * 1024 * 1024
/**
 * One command after the other would take longer than a process goes on after it opened a source.
 */
const MANY_QUOTES = 4_000

// Each command takes two seconds, and a worker stores a batch by several.
test('a MongoDB that is two seconds slower for each command costs no try, no memory, and no other endpoint its speed', async (t) => {
  const proxy = await openTcpProxy(t, requiredUrl('MONGODB_URL'))
  const sluice = await startSluice(t, { mongodbUrl: proxy.url, settings: { WAIT_SECONDS: '5' } })
  const { queue, bulk, drained } = openQueue(t, sluice.settings)
  const first = await postThread(sluice, aThread())
  assert.equal(first.status, 200)

  proxy.slow(SLOW_MS)
  const [worker] = sluice.workers
  assert(worker !== undefined)
  const before = worker.log.length
  const large = await postThread(sluice, aThread({ quotes: MANY_QUOTES }), 'respond-async')
  const removed = await deleteThread(sluice, first.externalId, 'respond-async')
  const waiting = Array.from({ length: 20 }, () => postThread(sluice, aThread()))
  const accepted = await Promise.all(
    Array.from({ length: 100 }, () => postThread(sluice, aThread({ quotes: 20 }), 'respond-async')),
  )
  assert.deepEqual(statusesOf([...accepted, removed]), [202])
  const slowest = await slowestOf([
    `${sluice.url}/readyz`,
    `${sluice.url}/limits`,
    `${sluice.url}/livez`,
  ])
  assert(slowest < QUICK_MS, `another endpoint took ${slowest} ms`)
  await worker.line((line) => line.msg === 'job.stored' && worker.log.indexOf(line) >= before)
  await worker.line((line) => line.msg === 'job.stored' && line.quotes === MANY_QUOTES)
  const answered = await Promise.all(waiting)
  for (const { status } of answered) assert(status === 200 || status === 504, String(status))
  for (const { pid } of [sluice.api, worker]) {
    const bytes = await residentBytes(pid)
    assert(bytes < MEMORY_BYTES, `${bytes} bytes`)
  }

  proxy.slow(0)
  await drained()
  assert.deepEqual([await queue.getFailedCount(), await bulk.getFailedCount()], [0, 0])
  assert.deepEqual(
    worker.log.filter(({ msg }) => msg === 'job.try_failed'),
    [],
  )
  await assertStored(sluice.db, [first, removed, ...accepted, large, ...answered], {
    afterCrash: true,
  })
})

async function slowestOf(urls: readonly string[]): Promise<number> {
  let slowest = 0
  for (const url of urls) {
    const began = performance.now()
    assert.equal((await fetch(url)).status, 200, url)
    slowest = Math.max(slowest, performance.now() - began)
  }
  return slowest
}

/**
 * More than the second after which the API once gave up on a key, and less than what counts as
 * unavailable.
 */
const QUITE_SLOW_MS = 1_200

test('while MongoDB is slow, callers get a result or a 504, also of an API that just started, and the verdict says so', async (t) => {
  const proxy = await openTcpProxy(t, requiredUrl('MONGODB_URL'))
  const sluice = await startSluice(t, { mongodbUrl: proxy.url, settings: { WAIT_SECONDS: '1' } })
  const { readVerdict: verdict } = await openOperator(sluice)
  await until('all is well', async () => (await verdict()).length === 0)

  proxy.slow(QUITE_SLOW_MS)
  const [{ url }, worker] = await Promise.all([sluice.startApi(), sluice.startWorker()])
  const late = { url, key: sluice.key }
  const seen = await until('callers time out', async () => {
    const [{ status, body }] = await Promise.all([
      postThread(late, aThread()),
      postThread(sluice, aThread()),
    ])
    assert(status === 200 || status === 504, JSON.stringify(body))
    return (await verdict()).find((text) => text.includes('got no result'))
  })
  assert.match(
    seen,
    /^\d+ % \(\d+ of \d+\) of the callers that waited got no result in time, in the last 10 s$/,
  )

  await until('the verdict says that MongoDB is slow', async () => {
    return (await verdict()).some((text) =>
      /^MongoDB is slow: a small write takes \d+\.\d s/.test(text),
    )
  })
  // A rollout goes on: the worker that started becomes ready, and no metric says that MongoDB is
  // unavailable.
  await until('a new worker is ready', async () => (await adminStatus(worker, '/readyz')) === 200)
  const { adminPort } = await worker.line((line) => typeof line.adminPort === 'number')
  const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
  assert.match(metrics, /^sluice_store_available\{process="worker"\} 1$/m)
  const [, seconds] =
    /^sluice_store_probe_seconds\{process="worker"\} ([\d.]+)$/m.exec(metrics) ?? []
  assert(Number(seconds) > 1, metrics)

  proxy.slow(0)
  await until('all is well again', async () => (await verdict()).length === 0)
})
