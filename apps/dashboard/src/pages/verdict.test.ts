import assert from 'node:assert/strict'
import type { Finding, Status } from '@sluice/contract'
import { test } from 'vitest'
import { timeTag, verdictOf } from './page.ts'

const failed = { lane: 'bulk', state: 'failed', jobs: 3, threads: 4, oldestMs: 0 } as const
const note: Finding = {
  code: 'failed_threads',
  level: 'note',
  text: '4 threads wait',
  page: '/failures',
}
const finding = (code: Finding['code'], text: string, page: string): Finding => ({
  code,
  level: 'problem',
  text,
  page,
})

/** The verdict on a page, in HTML. */
async function shown(
  verdict: Finding[],
  { role = 'operator', path = '/jobs' } = {},
): Promise<string> {
  const point = {
    at: '',
    minutes: 5,
    coveredSeconds: 0,
    accepted: 0,
    failed: 0,
    refused: 0,
    refusedByTenant: {},
  }
  const zero = { interactive: 0, bulk: 0 }
  const stored = { created: 0, updated: 0, unchanged: 0 }
  const span = { ...point, stored, waiting: zero, oldestSeconds: zero }
  const status: Status = {
    at: '',
    verdict,
    queued: [failed],
    paused: {},
    tenants: [],
    processes: [],
    redis: { usedBytes: 0, maxBytes: 0 },
    lastMinutes: span,
    lastHour: span,
  }
  const visitor = {
    role: role === 'operator' ? ('operator' as const) : ('viewer' as const),
    by: 'ada',
  }
  return String(await verdictOf(status, { visitor, csrf: 'c' }, path))
}

test('failures that wait make the verdict amber: all is well, except for them', async () => {
  assert.match(await shown([]), /data-level="well".*<p>All is well<\/p>/)
  const waiting = await shown([note])
  assert.match(
    waiting,
    /data-level="note".*<p>All is well, except:<\/p>.*4 threads wait\..*retry them\./,
  )
  assert.match(waiting, /href="\/failures">Show 4 failures</)
  assert.doesNotMatch(
    await shown([note, finding('redis_full', 'Redis is full', '/overview')]),
    /All is well/,
  )
})

test('each finding has the next step, and only an operator the button for it', async () => {
  const paused = finding(
    'lane_paused',
    'The bulk lane has been paused',
    '/jobs?state=waiting&lane=bulk',
  )
  assert.match(
    await shown([paused]),
    /Jobs wait until .*action="\/lanes\/bulk\/resume".*<button>Resume bulk</,
  )
  const viewed = await shown([paused], { role: 'viewer' })
  assert.match(viewed, /Show the jobs/)
  assert.doesNotMatch(viewed, /<form/)
  const old = finding('jobs_old', 'The oldest job has waited', '/jobs')
  const unavailable = finding('store_away', 'MongoDB has been unavailable', '/jobs')
  assert.match(await shown([old]), /start more/)
  assert.doesNotMatch(await shown([unavailable, old]), /start more/)
  const missing = finding('process_missing', 'No worker has shown', '/overview#processes')
  assert.doesNotMatch(await shown([missing, old]), /start more/)
  const full = [finding('redis_full', 'Redis is full', '/overview')]
  assert.match(await shown(full), /Show the overview/)
  assert.doesNotMatch(await shown(full, { path: '/overview' }), /<a /)
})

test('more than two findings of a kind are one, which opens', async () => {
  const stuck = Array.from({ length: 5 }, (_, at) =>
    finding('process_stuck', `Worker ${at}`, `/processes/${at}`),
  )
  assert.match(
    await shown(stuck),
    /Worker 0.*Worker 1.*<details><summary class="note">3 more like this<.*Worker 4/,
  )
})

test('a moment to come is not said to be ago', () => {
  const now = Date.now()
  assert.match(String(timeTag(now - 60_000)), /ago/)
  assert.doesNotMatch(String(timeTag(now + 60_000)), /ago/)
})
