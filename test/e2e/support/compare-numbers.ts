// Compares what the overview, the pages, `sluice status` and the metrics say with what callers,
// MongoDB and Redis know.
import assert from 'node:assert/strict'
import { countOf } from '@sluice/contract'
import type { StartedProcess } from '@sluice/test-support'
import type { Db } from 'mongodb'
import { fateOf } from '../../support/ledger.ts'
import type { QueueView } from '../../support/open-queue.ts'
import type { Posted } from '../../support/post-thread.ts'
import { until } from '../../support/until.ts'
import type { openOnCall } from './on-call.ts'
import { readMetric } from './until-metric.ts'

interface Known {
  db: Db
  queue: QueueView
  onCall: Awaited<ReturnType<typeof openOnCall>>
  ledger: readonly Posted[]
  failures: { all: number; retried: number }
  /** The most by which counts may err. */
  unsure: number
  /** Present while none was replaced: the counts of a process end with it. */
  processes: { api: StartedProcess; workers: readonly StartedProcess[] } | undefined
}

/** Compares the numbers when no job is left. */
export async function compareNumbers({
  db,
  queue,
  onCall,
  ledger,
  failures,
  unsure,
  processes,
}: Known) {
  const number = (isSo: (posted: Posted) => boolean) => ledger.filter(isSo).length
  const failed = failures.all - failures.retried
  const accepted = number((posted) => fateOf(posted) === 'accepted')
  const unknown = number((posted) => fateOf(posted) === 'unknown')
  const known = {
    refused: number(({ status, body }) => status === 503 && body.code !== 'stopping'),
    timedOut: number(({ status }) => status === 504),
    invalid: number(({ status }) => status === 400),
    sources: await db.collection('sources').countDocuments(),
  }
  assert.equal((await queue.queue.getFailedCount()) + (await queue.bulk.getFailedCount()), failed)

  const near = (shown: number, truth: number) => Math.abs(shown - truth) <= unsure
  /** Whether a number lacks none of these, and has at most those whose acceptance is not known. */
  const within = (shown: number, least: number) =>
    shown >= least - unsure && shown <= least + unknown + unsure
  let shown = {}
  const last = await until(
    'the numbers of the overview',
    async () => {
      const status = await onCall.status()
      const { stored, refusedByTenant, timedOut = 0, invalid = 0, ...point } = status.lastHour
      const refused = (refusedByTenant.acme ?? 0) + (refusedByTenant.other ?? 0)
      const kept = countOf(status.lastHour, 'stored') + failed
      const sums = (processes?.workers ?? []).map((worker) =>
        readMetric(worker, 'sluice_threads_stored_total'),
      )
      const storedByWorkers = (await Promise.all(sums)).reduce((sum, one) => sum + one, 0)
      shown = {
        refused,
        timedOut,
        created: stored.created,
        accepted: point.accepted,
        kept,
        failed: point.failed,
        storedByWorkers,
      }
      const isSo =
        near(refused, known.refused) &&
        near(timedOut, known.timedOut) &&
        near(invalid, known.invalid) &&
        near(stored.created, known.sources) &&
        near(point.failed, failures.all) &&
        within(point.accepted, accepted) &&
        // An API does not count what it does not know to be accepted.
        within(kept, point.accepted) &&
        (!processes || storedByWorkers === countOf(status.lastHour, 'stored'))
      return isSo ? status : undefined
    },
    5_000,
  ).catch(() =>
    assert.fail(`${JSON.stringify(shown)}, but ${JSON.stringify({ ...known, accepted, unknown })}`),
  )

  await compareFailures(onCall, failed)
  await until('the words of the page', async () => {
    // Read again, because what failed minutes ago may have just left them.
    const { lastMinutes } = await onCall.status()
    const words = await onCall.page.locator('.now').allTextContents()
    // The chart leaves out zeros.
    const parts = [
      lastMinutes.failed > 0 && `^${lastMinutes.failed} threads? failed`,
      lastMinutes.timedOut && `${lastMinutes.timedOut} timed out`,
    ]
    return new RegExp(parts.filter(Boolean).join('.*')).test(words.at(-1) ?? '')
  })

  if (processes === undefined) return
  const { lastHour } = last
  assert.equal(await readMetric(processes.api, 'sluice_threads_accepted_total'), lastHour.accepted)
  assert.equal(await readMetric(processes.api, 'sluice_threads', { state: 'failed' }), failed)
  assert.equal(await readMetric(processes.api, 'sluice_threads', { state: 'waiting' }), 0)
}

/**
 * Asserts that the time to stored is at least what callers waited, so that it does not hide an
 * outage.
 */
export async function compareTimes({
  onCall,
  ledger,
}: Pick<Known, 'onCall' | 'ledger'>): Promise<void> {
  // A lower bound: a 504 came before its thread was stored.
  const waited = ledger
    .filter(({ status }) => status === 200 || status === 504)
    .map(({ ms }) => ms / 1_000)
  const p99 = waited.sort((one, other) => one - other)[Math.floor(waited.length * 0.99)] ?? 0
  const shown = async () => (await onCall.status()).lastHour.totalTime?.interactive?.p99 ?? 0
  await until(`a time to stored of ${p99} s`, async () => (await shown()) >= p99, 5_000)
}

/** Compares the failed threads, each of which is a job. */
async function compareFailures(
  { page, url, status, runSluice }: Known['onCall'],
  failed: number,
): Promise<void> {
  const { queued } = await status()
  const sum = queued.reduce(
    (sum, { state, threads }) => sum + (state === 'failed' ? threads : 0),
    0,
  )
  assert.equal(sum, failed)
  const { stdout } = await runSluice('status')
  const rows = [...stdout.matchAll(/^\w+ +failed +(\d+) +(\d+) /gm)]
  assert.equal(
    rows.reduce((sum, [, , threads]) => sum + Number(threads), 0),
    failed,
    stdout,
  )
  await page.goto(`${url}/failures`)
  const threads = await page.locator('#groups td:nth-child(3)').allTextContents()
  assert.equal(
    threads.reduce((sum, text) => sum + Number(text), 0),
    failed,
  )
  assert.equal(
    await page.locator('.badge').allTextContents().then(String),
    failed > 0 ? String(failed) : '',
  )
  await page.goto(`${url}/jobs?state=failed`)
  assert.equal(await page.locator('tbody tr').count(), failed)
  const states = page.getByRole('navigation', { name: 'States' })
  assert.match(
    String(await states.locator('[aria-current]').textContent()),
    new RegExp(`failed ${failed}$`),
  )
  await page.goto(`${url}/overview`)
}
