import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { createLogger, openMetrics } from '@sluice/process'
import { type FetchedJob, PartlyStoredError } from '@sluice/queue'
import { test } from 'vitest'
import { workerMetrics } from './metrics.ts'
import { createNoteFailure } from './note-failure.ts'

const THREADS = 25
const places = Array.from({ length: THREADS }, (_, place) => place)

test('the log line of a failed import names its import and twenty failed threads, and counts the others', async () => {
  const written = new PassThrough()
  const { metrics } = openMetrics('test', workerMetrics)
  const note = createNoteFailure({
    metrics,
    dashboardUrl: 'https://board.example/',
    log: createLogger('test', 'warn', written),
  })
  const reason = 'Document failed validation'
  const failed = places.map((place) => ({ place, service: 'slack', externalId: `C${place}`, reason }))
  note(aJob(), new PartlyStoredError(reason, failed, [], undefined), true)

  const line = JSON.parse(String(written.read()))
  assert.deepEqual(
    { ...line, time: 0, pid: 0, hostname: '', name: '' },
    {
      level: 'error',
      time: 0,
      pid: 0,
      hostname: '',
      name: '',
      jobId: 'j',
      requestId: 'r',
      importId: 'i',
      tenant: 'acme',
      threads: THREADS,
      attempt: 5,
      reason,
      failedThreads: places.slice(0, 20).map((place) => `slack/C${place}`),
      more: 5,
      page: 'https://board.example/jobs/j',
      msg: 'job.failed',
    },
  )
  const { values } = await metrics.threadsFailed.get()
  assert.equal(values[0]?.value, THREADS)
})

function aJob(): FetchedJob {
  const threads = places.map((place) => {
    return { source: { service: 'slack' as const, externalId: `C${place}`, title: 'a title' }, quotes: [] }
  })
  const data = { tenant: 'acme', stamp: 1, requestId: 'r', retained: false, import: { id: 'i', places }, threads }
  const delivery = { attempt: 5, redelivered: true, suspect: false, enqueuedAt: 0 }
  return { id: 'j', name: 'slack/C0', lane: 'bulk', digests: [], data, ...delivery }
}
