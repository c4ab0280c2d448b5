import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { createMetrics } from '@sluice/ops'
import { test } from 'vitest'
import { createApiMetrics } from '../api-metrics.ts'
import type { BatchGroup } from './batch-group.ts'
import { waitForGroups } from './wait-for-groups.ts'

const KIB = 1024

const thread = {
  source: { title: 'a', externalId: 'a', service: 'slack' as const },
  quotes: [],
}
const refused = (bytes: number): BatchGroup => ({
  items: [{ index: 0, status: 400, problem: JSON.stringify('x'.repeat(bytes)) }],
  threads: [],
  resultBytes: bytes,
})

/** Groups whose one job ends when it is told to. */
function open() {
  const job = Promise.withResolvers<undefined>()
  const parts = {
    enqueuer: { enqueue: async () => {} },
    room: { replica: 'r', wait: () => ({ ending: job.promise, leave() {} }) },
    metrics: createApiMetrics(createMetrics({ prefix: 'test_', process: 'test' })),
    stopping: new AbortController().signal,
    waitSeconds: 0,
  }
  const request = new IncomingMessage(new Socket())
  const call = { tenant: 't', requestId: 'r', request, response: new ServerResponse(request), params: {}, log: {} }
  let handed = 0
  const groups = waitForGroups(parts, call, async (results) => {
    handed += results.length
  })
  return { groups, endJob: () => job.resolve(undefined), handed: () => handed }
}

test('what is refused waits for the results before it only as long as its bytes are few', async () => {
  const { groups, endJob, handed } = open()
  await groups.submit({ items: [{ index: 0, thread }], threads: [thread], resultBytes: 256 })
  for (let at = 0; at < 15; at++) await groups.submit(refused(256 * KIB))
  assert.equal(handed(), 0)
  let hasRoom = false
  const submitting = groups.submit(refused(512 * KIB)).then(() => {
    hasRoom = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(hasRoom, false)
  endJob()
  await submitting
  await groups.finish()
  assert.equal(handed(), 17)
})
