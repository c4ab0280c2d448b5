// The page of the jobs that completed or failed last.
import type { FailedJobPage, Hit } from '@sluice/contract'
import { asViewersSee, type createListRecent, type FailedJobs, orUnavailable } from '@sluice/queue'
import { html } from 'hono/html'
import { HEADS, hitRow } from './find.ts'
import { isOperator, type Page, table, type Visit } from './layout.ts'

export interface RecentDeps {
  listRecent: ReturnType<typeof createListRecent>
  failedJobs: Pick<FailedJobs, 'list'>
  traceUrl: string | null
}

const SHOWN = 50

/** Shows the newest ones. */
export async function recentPage({ listRecent, failedJobs, traceUrl }: RecentDeps, visit: Visit): Promise<Page> {
  const reads = Promise.all([listRecent({}), failedJobs.list({ filter: {}, limit: SHOWN })])
  const [completed, failed] = await orUnavailable(reads)
  const { jobs } = isOperator(visit) ? failed : asViewersSee.page(failed)
  const ended = [...completed.jobs, ...jobs.map(failedHit)].sort((one, other) => endOf(other) - endOf(one))
  const rows = ended.slice(0, SHOWN).map((hit) => hitRow(hit, traceUrl))
  const body = html`<div id="recent" data-refresh>${rows.length === 0 ? html`<p>No job has ended.</p>` : table('Recent jobs', HEADS, rows)}</div>`
  return { title: 'Recent jobs', body }
}

function failedHit({ enqueuedAt, failedAt, reasonGroup: _, ...job }: FailedJobPage['jobs'][number]): Hit {
  return { kind: 'job', state: 'failed', ...job, acceptedAt: enqueuedAt, endedAt: failedAt }
}

const endOf = ({ endedAt = '' }: Hit) => Date.parse(endedAt)
