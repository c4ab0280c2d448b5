import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { PROBLEMS } from '@sluice/contract'
import { openMetrics } from '@sluice/process'
import { test } from 'vitest'
import { apiMetrics, countProblems, readApi, UNSERVED } from './metrics.ts'

test('heartbeats count what was refused, also because a server was unavailable, and apart from that what timed out or was invalid', async () => {
  const { metrics } = openMetrics('test', apiMetrics)
  const problems = countProblems(metrics)
  const post = { tenant: 'acme', route: '/sources', request: { method: 'POST' } }
  for (const code of Object.keys(PROBLEMS)) problems.note(code, post)
  for (let more = 0; more < 102; more++) problems.note('queue_unavailable', post)
  // An operator, for example, has no tenant.
  problems.note('queue_unavailable', { ...post, tenant: '' })
  // A faulty query is no invalid post.
  problems.note('request_invalid', { ...post, request: { method: 'GET' } })
  const { totals, manyTotals, recentTotals } = await readApi(
    metrics,
    problems.refusals,
    async () => {
      return { queued: [], paused: {}, load: { threads: 0, bytes: 0 }, clockBehindMs: 0 }
    },
    {},
  )
  // The quota of a key is no lack of capacity.
  assert.equal(recentTotals?.refused, 110)
  assert.equal(recentTotals['refused:queue_unavailable:acme'], 103)
  assert.equal(recentTotals['refused:rate_limited:acme'], undefined)
  // queue_full, tenant_share, rate_limited, overloaded, internal, and queue, keys or store
  // unavailable; acceptance_unknown and job_pending.
  assert.deepEqual(
    [totals?.refused, totals?.timedOut, manyTotals],
    [111, 2, { 'refused:acme': 110 }],
  )
  const invalid = Object.values(PROBLEMS).filter(({ status }) => status === 400)
  assert.equal(totals?.invalid, invalid.length)
})

test('the verdict counts as refused what the alert counts', () => {
  const alerts = readFileSync(
    new URL('../../../docs/monitoring/alerts.yml', import.meta.url),
    'utf8',
  )
  const [, codes = ''] = /sluice_problems_total\{code=~"([^"]*)"/.exec(alerts) ?? []
  assert.deepEqual(new Set(codes.split('|')), UNSERVED)
})
