import assert from 'node:assert/strict'
import { test } from 'vitest'
import { createMetrics } from './create-metrics.ts'

test('metrics carry the prefix and the process, and are separate from those of another registry', async () => {
  const api = createMetrics({ prefix: 'sluice_', process: 'api' })
  const worker = createMetrics({ prefix: 'sluice_', process: 'worker' })
  const requests = api.counter({ name: 'requests_total', help: 'Requests.', labels: ['status'] })
  worker.counter({ name: 'requests_total', help: 'Requests.', labels: ['status'] })
  requests.inc({ status: '200' })
  assert.match(await api.text(), /^sluice_requests_total\{status="200",process="api"\} 1$/m)
  assert.doesNotMatch(await worker.text(), /^sluice_requests_total\{/m)
})

test('the metrics of Node.js itself are included', async () => {
  assert.match(
    await createMetrics({ prefix: 'sluice_', process: 'api' }).text(),
    /^nodejs_heap_size_used_bytes\{process="api"\}/m,
  )
})

test('a histogram has the buckets of its options', async () => {
  const metrics = createMetrics({ prefix: 'sluice_', process: 'api' })
  metrics.histogram({ name: 'wait_seconds', help: 'Wait.', buckets: [0.1, 1] }).observe(0.5)
  const text = await metrics.text()
  assert.match(text, /^sluice_wait_seconds_bucket\{le="0.1",process="api"\} 0$/m)
  assert.match(text, /^sluice_wait_seconds_bucket\{le="1",process="api"\} 1$/m)
})

test('a sampled gauge is read on request, and a failing one does not affect the others', async () => {
  const metrics = createMetrics({ prefix: 'sluice_', process: 'api' })
  const depths = [3, 4]
  metrics.sampledGauge({ name: 'depth', help: 'Depth.', read: () => depths.shift() ?? 0 })
  metrics.sampledGauge({ name: 'age_seconds', help: 'Age.', read: () => Promise.reject(new Error('away')) })
  assert.match(await metrics.text(), /^sluice_depth\{process="api"\} 3$/m)
  const second = await metrics.text()
  assert.match(second, /^sluice_depth\{process="api"\} 4$/m)
  assert.match(second, /^sluice_age_seconds\{process="api"\} Nan$/im)
})
