import assert from 'node:assert/strict'
import { createMetrics } from '@sluice/ops'
import { test } from 'vitest'
import { createApiMetrics } from '../metrics.ts'
import { openGroupPipeline } from './group-pipeline.ts'
import type { ImportGroup } from './import-items.ts'

const KIB = 1024

const thread = {
  source: { title: 'a', externalId: 'a', service: 'slack' as const },
  quotes: [],
}
const refused = (bytes: number): ImportGroup => ({
  items: [{ index: 0, status: 400, problem: JSON.stringify('x'.repeat(bytes)) }],
  threads: [],
  bytes: 0,
  resultBytes: bytes,
})

/** A pipeline whose one job is completed by `completeJob`. */
function open() {
  const job = Promise.withResolvers<undefined>()
  const deps = {
    enqueuer: { enqueue: async (id: string) => id, admit() {}, charge() {}, quotaLeft: () => undefined },
    replyListener: { replica: 'r', wait: () => ({ result: job.promise, cancel() {} }) },
    metrics: createApiMetrics(createMetrics({ prefix: 'test_', process: 'test' })),
    limits: { waitSeconds: 0 },
  }
  const context = { tenant: 't', requestId: 'r', signal: new AbortController().signal }
  let handed = 0
  const groups = openGroupPipeline(deps, context, async (results) => {
    handed += results.length
  })
  return { groups, completeJob: () => job.resolve(undefined), handed: () => handed }
}

test('refused items wait for earlier results only while their bytes are few', async () => {
  const { groups, completeJob, handed } = open()
  await groups.submit({ items: [{ index: 0, thread }], threads: [thread], bytes: 0, resultBytes: 256 })
  for (let at = 0; at < 3; at++) await groups.submit(refused(256 * KIB))
  assert.equal(handed(), 0)
  let hasRoom = false
  const submitting = groups.submit(refused(512 * KIB)).then(() => {
    hasRoom = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(hasRoom, false)
  completeJob()
  await submitting
  await groups.finish()
  assert.equal(handed(), 5)
})
