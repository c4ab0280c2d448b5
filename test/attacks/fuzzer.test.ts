// Fuzzes every endpoint with requests that are derived from the contract, beside a caller whose
// answers are timed.
import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type Caller, createCaller } from '../e2e/support/caller.ts'
import { scale } from '../support/scale.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { p99, postDuring, postTimes } from './fuzzer/bystander.ts'
import { type FuzzReport, openFuzzer } from './fuzzer/fuzz.ts'
import { fuzzedRequests } from './fuzzer/fuzzed-request.ts'
import { assertUnharmed } from './support/unharmed.ts'

// `FUZZ_SEED` sends the same requests again, `FUZZ_REQUESTS` that number of them, however long they
// last.
const { FUZZ_SEED = String(Math.floor(Math.random() * 2 ** 31)), FUZZ_REQUESTS } = process.env
const REQUESTS = Number(FUZZ_REQUESTS ?? 2_500)
/** How long requests are sent, in ms. A part that has begun is finished. */
const SENDING_MS =
  FUZZ_REQUESTS === undefined ? scale(2_000, Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
const TIME_LIMIT_MS = 900_000

/**
 * Requests of one part. Between two parts the timed caller is alone, so that both of its times are
 * of the same minute.
 */
const PART = scale(250, 1_000)
const QUIET_POSTS = 40
/**
 * Below this, a p99 of about 40 posts, which is their slowest, says nothing on a busy machine, in
 * ms.
 */
const NOISE_MS = 500

describe('requests derived from the contract', () => {
  let sluice: TestSluice
  let fuzzer: ReturnType<typeof openFuzzer>
  let bystander: Caller
  const quiet: number[] = []
  const fuzzed: number[] = []

  beforeSuite(async (t) => {
    sluice = await startSluice(t)
    const [other, calm] = await Promise.all([keyOf('globex'), keyOf('bystander')])
    const { key: operator } = await createKey(sluice.db, { role: 'operator', name: 'fuzz' })
    fuzzer = openFuzzer({ url: sluice.url, keys: { importer: sluice.key, other, operator } })
    t.onTestFinished(fuzzer.close)
    bystander = createCaller({ url: sluice.url, key: calm })
    await postTimes(bystander, QUIET_POSTS)
  })
  const keyOf = async (tenant: string) => (await createKey(sluice.db, { tenant, name: 'fuzz' })).key

  test('get no 5xx, and nothing that is not documented', { timeout: TIME_LIMIT_MS }, async () => {
    const { report, run, check } = fuzzer
    const seed = Number(FUZZ_SEED)
    const end = performance.now() + SENDING_MS
    for (let part = 0; report.sent < REQUESTS && performance.now() < end; part++) {
      const requests = fuzzedRequests(seed + part, Math.min(PART, REQUESTS - report.sent))
      quiet.push(...(await postTimes(bystander, QUIET_POSTS)))
      fuzzed.push(...(await postDuring(bystander, run(requests))))
      check()
    }
    console.log(`${report.sent} requests, FUZZ_SEED=${seed}; ${countsOf(report)}`)
    const { findings, sent } = report
    assert.equal(
      findings.length,
      0,
      `${findings.length} of ${sent}, FUZZ_SEED=${seed}:\n${findings.slice(0, 5).join('\n\n')}`,
    )
  })

  test("leave another caller's p99 below five times its usual one", () => {
    console.log(
      `p99 of another caller: ${p99(quiet).toFixed(1)} ms alone, ${p99(fuzzed).toFixed(1)} ms beside them`,
    )
    const usual = Math.max(p99(quiet), NOISE_MS)
    assert.ok(p99(fuzzed) < 5 * usual, `${p99(fuzzed)} ms beside them, ${p99(quiet)} ms alone`)
  })

  test('leave the processes running, with no error in their logs', () => assertUnharmed(sluice))
})

function countsOf({ statuses }: FuzzReport): string {
  const sorted = [...statuses].sort(([one], [other]) => one - other)
  return sorted.map(([status, count]) => `${status}: ${count}`).join(', ')
}
