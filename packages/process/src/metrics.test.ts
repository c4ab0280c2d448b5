import assert from 'node:assert/strict'
import { test } from 'vitest'
import { metric, openMetrics } from './metrics.ts'

const declarations = {
  requests: metric.counter({
    name: 'sluice_requests_total',
    help: 'Requests.',
    labels: ['status'],
  }),
  wait: metric.histogram({
    name: 'sluice_wait_seconds',
    help: 'Wait.',
    labels: ['command'],
    buckets: [0.1, 1],
  }),
  depth: metric.gauge({ name: 'sluice_depth', help: 'Depth.' }),
  ages: metric.gauge({ name: 'sluice_age_seconds', help: 'Age.', labels: ['lane'] }),
}

const open = () => openMetrics('api', declarations)

test('each metric carries its process, and is separate from those of another registry', async () => {
  const [one, other] = [open(), open()]
  one.metrics.requests.inc({ status: '200' })
  assert.match(await one.text(), /^sluice_requests_total\{status="200",process="api"\} 1$/m)
  assert.doesNotMatch(await other.text(), /^sluice_requests_total\{/m)
})

test('the metrics of Node.js and the version of Sluice are included', async () => {
  const text = await open().text()
  assert.match(text, /^nodejs_heap_size_used_bytes\{process="api"\}/m)
  assert.match(
    text,
    /^sluice_build_info\{version="\d+\.\d+\.\d+",node="v\d+[\d.]+",process="api"\} 1$/m,
  )
})

test('gauges are sampled at each scrape, and have no samples while their read fails, which affects no others', async () => {
  const { metrics, sample, text } = open()
  const depths = [3, 4]
  const ages: Record<string, number>[] = [{ bulk: 5, interactive: 1 }, { bulk: 6 }]
  sample([metrics.depth], () => metrics.depth.set(depths.shift() ?? assert.fail()))
  sample([metrics.ages], async () => {
    for (const [lane, age] of Object.entries(ages.shift() ?? assert.fail()))
      metrics.ages.set({ lane }, age)
  })
  const samples = async () =>
    Array.from((await text()).matchAll(/^sluice_(?:depth|age_seconds)\{.*/gm), ([line]) => line)
  const depth = (value: number) => `sluice_depth{process="api"} ${value}`
  const age = (lane: string, value: number) =>
    `sluice_age_seconds{lane="${lane}",process="api"} ${value}`
  assert.deepEqual(await samples(), [depth(3), age('bulk', 5), age('interactive', 1)])
  assert.deepEqual(await samples(), [depth(4), age('bulk', 6)])
  assert.deepEqual(await samples(), [])
})
