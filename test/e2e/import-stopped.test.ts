import assert from 'node:assert/strict'
import { connectRetrying } from '@sluice/process/redis'
import { createImports, queueKeys } from '@sluice/queue'
import { beforeSuite } from '@sluice/test-support'
import { test } from 'vitest'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { BUSY_MS, until } from '../support/until.ts'
import { chunk, importHead, openWire, type Wire } from './support/open-wire.ts'
import { someThread } from './support/some-thread.ts'

const NDJSON = { 'content-type': 'application/x-ndjson' }
const closed = ({ socket }: Wire) => void socket.destroy()
const line = () => chunk(`${JSON.stringify(someThread())}\n`)

let sluice: TestSluice
let impatient: Awaited<ReturnType<TestSluice['startApi']>>
beforeSuite(async (t) => {
  sluice = await startSluice(t, { settings: { SHUTDOWN_GRACE_SECONDS: '20' } })
  impatient = await sluice.startApi({ SHUTDOWN_GRACE_SECONDS: '3' })
})

test('a stopping API exits as soon as an open import is done', async () => {
  const { url, key, api } = sluice
  const wire = await openWire(url)
  await wire.write(
    importHead({ 'x-api-key': key, 'transfer-encoding': 'chunked', ...NDJSON }) + line(),
  )
  await wire.until(/"outcome":"created"/)

  api.signal('SIGTERM')
  await until('new connections are refused', () => openWire(url).then(closed, () => true))
  await wire.write(`${line()}0\r\n\r\n`)
  assert.match(await wire.until(/\r\n0\r\n\r\n$/), /"received":2,"created":2/)
  const done = performance.now()
  assert.deepEqual(await api.ended, { code: 0, signal: null })
  const ms = performance.now() - done
  assert.ok(ms < 5_000 + BUSY_MS, `exited after ${ms} ms`)
})

test('an import whose connection broke has stopped after its items, and one that was sent whole has ended', async (t) => {
  const { url } = impatient
  const redis = connectRetrying({ redisUrl: sluice.settings.REDIS_URL ?? '', queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const imports = createImports(redis, queueKeys(sluice.settings.QUEUE ?? ''))
  const head = { 'x-api-key': sluice.key, 'transfer-encoding': 'chunked', ...NDJSON }
  const part = { ...head, 'import-id': crypto.randomUUID() }
  const [cut, whole] = await Promise.all([openWire(url), openWire(url)])
  const shown = async () =>
    (await imports.list()).flatMap(({ done, ended, received }) =>
      done ? [`${ended} ${received}`] : [],
    )
  await cut.write(importHead(part) + line())
  await cut.until(/"outcome":"created"/)
  cut.socket.destroy()
  await until('it is known to have stopped', async () => (await shown()).includes('cut 1'))
  await whole.write(`${importHead(head)}${line()}${line()}${line()}0\r\n\r\n`)
  await until('the other one is known to have ended', async () =>
    (await shown()).includes('whole 3'),
  )
  // The caller posts the rest: whether that is all of it, nobody knows.
  const again = await openWire(url)
  await again.write(`${importHead(part)}${line()}0\r\n\r\n`)
  await until('nobody knows whether it has ended', async () => (await shown()).includes('part 2'))
  for (const wire of [whole, again]) closed(wire)
})

test('at the end of the grace time an open import gets its results so far, and a 503 for the rest', async () => {
  const { url, api } = impatient
  const head = { 'x-api-key': sluice.key, 'transfer-encoding': 'chunked', ...NDJSON }
  const [begun, silent, async] = await Promise.all([openWire(url), openWire(url), openWire(url)])
  await begun.write(importHead(head) + line())
  await begun.until(/"outcome":"created"/)
  await silent.write(importHead({ ...head, expect: '100-continue' }))
  await silent.until(/100 Continue/)
  await async.write(importHead({ ...head, expect: '100-continue', prefer: 'respond-async' }))
  await async.until(/100 Continue/)

  api.signal('SIGTERM')
  const [reply, ...others] = await Promise.all([
    begun.until(/\r\n0\r\n\r\n/),
    silent.until(/"requestId":"[^"]+"/),
    async.until(/"requestId":"[^"]+"/),
  ])
  assert.match(reply, /"index":1,"status":503,"problem":\{.*"code":"stopping"/)
  assert.match(reply, /"summary":\{"received":2,"created":1,"updated":0,"unchanged":0,"failed":1\}/)
  for (const answer of others) {
    assert.match(answer, /HTTP\/1.1 503 /)
    assert.match(answer, /^retry-after: 1\r$/m)
  }
  assert.deepEqual(await api.ended, { code: 0, signal: null })
})
