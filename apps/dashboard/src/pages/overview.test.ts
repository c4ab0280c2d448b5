import assert from 'node:assert/strict'
import type { HistoryPoint } from '@sluice/contract'
import type { CountedSpan } from '@sluice/operations'
import { test } from 'vitest'
import { charts, sinceData } from './overview.ts'
import { processTables } from './processes.ts'

const POINT: HistoryPoint = {
  ...{ at: '2024-05-01T09:25:00.000Z', minutes: 1, coveredSeconds: 60 },
  ...{ accepted: 60, failed: 0, refused: 0, timedOut: 0, forbidden: 0, invalid: 0 },
  stored: { created: 0, updated: 0, unchanged: 0 },
  refusedByTenant: {},
  waiting: { interactive: 0, bulk: 0 },
  oldestSeconds: { interactive: 0, bulk: 0 },
}

const spansOf = (points: (HistoryPoint | null)[]) =>
  points.map((point, at): CountedSpan => {
    return { at: new Date(Date.parse(POINT.at) + at * 60_000).toISOString(), point }
  })
const textsIn = (page: string, name: string) =>
  [...page.matchAll(new RegExp(`<${name}[^>]*>([^<]*)</${name}>`, 'g'))].map(([, text]) => text)

test('a chart has a gap where no process lived, and its last value is that of the last minute', () => {
  const status = { queued: [], lastMinutes: POINT }
  const [threads = ''] = String(charts(status, spansOf([POINT, null, POINT, POINT]), [])).split(
    '</figure>',
  )
  assert.match(threads, /class="line-0" d="M0\.0 0\.0m-6 0h12M666\.7 0\.0L1000\.0 0\.0"/)
  assert.match(threads, /<title>2024-05-01T09:28Z accepted 1\/s, stored 0\/s<\/title>/)
  assert.match(threads, /<title>2024-05-01T09:26Z no process lived<\/title>/)
})

test('a chart begins with its data, has round values and times at its axes, and its points lead to their jobs', () => {
  const points = spansOf([
    ...Array(40).fill(null),
    ...Array(20).fill({ ...POINT, accepted: 13 * 60 }),
  ])
  assert.deepEqual(sinceData(spansOf([...Array(59).fill(null), POINT])).length, 5)
  const mark = { at: '2024-05-01T10:21:30.000Z', text: 'pause of the bulk lane by ada' }
  const [rates = ''] = String(
    charts({ queued: [], lastMinutes: POINT }, sinceData(points), [mark]),
  ).split('</figure>')
  assert.deepEqual(textsIn(rates, 'span').slice(-4), ['15/s', '10/s', '5/s', '0/s'])
  assert.deepEqual(textsIn(rates, 'text'), ['10:05', '10:10', '10:15', '10:20'])
  assert.match(
    rates,
    /since=2024-05-01T10%3A21Z&amp;until=2024-05-01T10%3A22Z"[^>]*><title>[^<]*by ada</,
  )
})

test('an axis of times has one unit, which its highest value decides', () => {
  const axisOf = (p99: number) => {
    const time = { p50: p99, p95: p99, p99 }
    const point = { ...POINT, totalTime: { bulk: time } }
    const all = charts({ queued: [], lastMinutes: POINT }, spansOf([point]), [])
    const [, , times = ''] = String(all).split('</figure>')
    return textsIn(times, 'span').slice(2)
  }
  assert.deepEqual(axisOf(9), ['10 s', '5 s', '0 s'])
  assert.deepEqual(axisOf(0.019), ['20 ms', '10 ms', '0 ms'])
  assert.deepEqual(axisOf(1.2), ['1.5 s', '1 s', '0.5 s', '0 s'])
})

test('time-outs are a line of their own, and more than one in a hundred is red', () => {
  const failuresOf = (lastMinutes: HistoryPoint) =>
    String(charts({ queued: [], lastMinutes }, spansOf([lastMinutes, lastMinutes]), [])).split(
      '</figure>',
    )[3] ?? ''
  const few = failuresOf({ ...POINT, accepted: 1_000, timedOut: 9 })
  assert.match(few, /9 timed out<\/div>/)
  assert.match(failuresOf(POINT), /none lately/)
  assert.doesNotMatch(few, /bad/)
  const many = failuresOf({ ...POINT, accepted: 1_000, timedOut: 11, refused: 3 })
  assert.match(many, /3 refused, <strong class="bad">11 timed out<\/strong>/)
  assert.match(many, /<path class="line-2 bad"/)
  assert.match(many, /failed 0, refused 3, timed out 11/)
})

test('processes that are gone are grouped below those that live', () => {
  const about = {
    kind: 'worker',
    version: '1.0.0',
    host: 'here',
    startedAt: POINT.at,
    cpu: 0,
    memoryBytes: 0,
  } as const
  const processes = [500, 11_000, 40_000].map((seenMsAgo, pid) => ({
    ...about,
    id: `${pid}`,
    pid,
    seenMsAgo,
  }))
  const [living = '', gone = ''] = String(processTables({ processes })).split('<details>')
  assert.match(living, /here:0/)
  assert.match(gone, /<summary>gone \(2\)<\/summary>.*here:1.*gone for 11 s.*here:2/s)
  assert.doesNotMatch(String(processTables({ processes: processes.slice(0, 1) })), /gone/)
})
