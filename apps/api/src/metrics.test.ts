import assert from 'node:assert/strict'
import { PROBLEMS } from '@sluice/contract'
import { openMetrics } from '@sluice/process'
import { test } from 'vitest'
import { apiMetrics, countProblems, readApi } from './metrics.ts'

test('heartbeats count what was refused, also because a server was away, and apart from that what timed out', async () => {
  const { metrics } = openMetrics('test', apiMetrics)
  const problems = countProblems(metrics)
  for (const code of Object.keys(PROBLEMS)) problems.note(code, 'acme')
  for (let more = 0; more < 102; more++) problems.note('queue_unavailable', 'acme')
  // An operator, for example, has no tenant.
  problems.note('queue_unavailable', '')
  const { totals, manyTotals } = await readApi(
    metrics,
    problems.byTenant,
    async () => {
      return { queued: [], paused: {}, load: { threads: 0, bytes: 0 }, clockBehindMs: 0 }
    },
    {},
  )
  // queue_full, tenant_share, rate_limited, overloaded, and queue, keys or store unavailable; acceptance_unknown and
  // job_pending.
  assert.deepEqual([totals?.refused, totals?.timedOut, manyTotals], [110, 2, { 'refused:acme': 109 }])
})
