import assert from 'node:assert/strict'
import type { JobDetail } from '@sluice/operations'
import { test } from 'vitest'
import { historyOf } from './jobs.ts'

test('a timeline is in the order of time: equal attempts are one event if nothing happened between them', () => {
  const at = (second: number) => new Date(Date.UTC(2024, 4, 1, 9, 30, second)).toISOString()
  const attempt = (second: number) => ({ at: at(second), worker: 'vm:1', reason: 'refused' })
  const job: JobDetail = {
    hit: {
      ...{ kind: 'job', id: 'a', tenant: 'acme', state: 'failed', attempts: 4 },
      ...{ acceptedAt: at(0), endedAt: at(9) },
    },
    tries: [attempt(1), attempt(2), attempt(3), attempt(8)],
    progress: { waitingSince: Date.parse(at(5)) },
    ...{ failedThreads: [], failedThreadCount: 1, stack: [], payload: null },
  }
  const events = [...String(historyOf(job)).matchAll(/<strong>([^<]*)<\/strong>/g)]
  assert.deepEqual(
    events.map(([, what]) => what),
    [
      'accepted',
      '3 attempts failed alike',
      'went back to waiting',
      'attempt failed',
      'failed for good',
    ],
  )
})
