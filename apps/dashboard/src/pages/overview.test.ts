import assert from 'node:assert/strict'
import type { HistoryPoint } from '@sluice/contract'
import type { CountedSpan } from '@sluice/operations'
import { test } from 'vitest'
import { charts, processTables } from './overview.ts'

const POINT: HistoryPoint = {
  ...{ at: '2024-05-01T09:25:00.000Z', minutes: 1, coveredSeconds: 60, accepted: 60, failed: 0, refused: 0 },
  stored: { created: 0, updated: 0, unchanged: 0 },
  refusedByTenant: {},
  waiting: { interactive: 0, bulk: 0 },
  oldestSeconds: { interactive: 0, bulk: 0 },
}

test('a chart has a gap where no process lived, and its last value is that of the last minute', () => {
  const spans = [POINT, null, POINT, POINT].map((point): CountedSpan => ({ at: POINT.at, point }))
  const status = { queued: [], lastMinutes: POINT }
  const [threads = ''] = String(charts(status, spans, [])).split('</figure>')
  assert.match(threads, /class="line-0" d="M0\.0 18\.0h0M320\.0 18\.0h0L480\.0 18\.0"/)
  assert.match(threads, /accepted 1\.0\/s, stored 0\.00\/s&quot;\]/)
  assert.match(threads, /no process lived/)
})

test('processes that are gone are grouped below those that live', () => {
  const about = { kind: 'worker', version: '1.0.0', host: 'here', startedAt: POINT.at, cpu: 0, memoryBytes: 0 } as const
  const processes = [500, 11_000, 40_000].map((seenMsAgo, pid) => ({ ...about, id: `${pid}`, pid, seenMsAgo }))
  const [living = '', gone = ''] = String(processTables({ processes })).split('<details>')
  assert.match(living, /here:0/)
  assert.match(gone, /<summary>gone \(2\)<\/summary>.*here:1.*gone for 11 s.*here:2/s)
  assert.doesNotMatch(String(processTables({ processes: processes.slice(0, 1) })), /gone/)
})
