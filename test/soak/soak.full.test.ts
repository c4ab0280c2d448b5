import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'vitest'
import { runSoak } from './run-soak.ts'
import { describeFault, makeSchedule } from './schedule.ts'

// `SOAK_SEED` runs the same faults again, `SOAK_MINUTES` faults of that many minutes.
const { SOAK_SEED = String(randomInt(2 ** 32)), SOAK_MINUTES = '1.5' } = process.env
const SECONDS = Number(SOAK_MINUTES) * 60
/** 30 s to start + 60 s until the last jobs are done + 90 s on a busy machine. */
const BESIDE_FAULTS_MS = 180_000

test(`${SOAK_MINUTES} minutes of random faults break no promise`, {
  timeout: SECONDS * 1000 + BESIDE_FAULTS_MS,
}, async (t) => {
  const seed = Number(SOAK_SEED)
  const faults = makeSchedule(seed, SECONDS)
  await t.annotate([`SOAK_SEED=${seed}`, ...faults.map(describeFault)].join('\n'))
  const { posted, ...report } = await runSoak(t, { seed, seconds: SECONDS, faults }, console.log)
  const kinds = Map.groupBy(posted, ({ status, body }) => `${status} ${body.code ?? ''}`.trim())
  await t.annotate(Array.from(kinds, ([kind, of]) => `${of.length} × ${kind}`).join(', '))
  assert.deepEqual(
    report,
    {
      differences: { lost: [], storedTwice: [], neverAccepted: [], outdated: [], wrongTotals: [] },
      failedJobs: 0,
      violations: [],
    },
    `SOAK_SEED=${seed}`,
  )
})
