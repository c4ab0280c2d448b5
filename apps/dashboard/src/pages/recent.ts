// The page of the jobs that completed or failed last.
import type { FailedJobPage, Hit } from '@sluice/contract'
import { asViewersSee, orUnavailable } from '@sluice/queue'
import { html } from 'hono/html'
import { HEADS, hitCells } from './find.ts'
import { table } from './layout.ts'
import { isOperator, type Show } from './page.ts'

const SHOWN = 50

/** Shows the newest ones. */
export const recentPage: Show = async (visit, { listRecent, failedJobs, traceUrl }) => {
  const reads = Promise.all([listRecent({}), failedJobs.list({ filter: {}, limit: SHOWN })])
  const [completed, failed] = await orUnavailable(reads)
  const { jobs } = isOperator(visit) ? failed : asViewersSee.page(failed)
  const ended = [...completed.jobs, ...jobs.map(failedHit)].sort((one, other) => endOf(other) - endOf(one))
  const rows = ended.slice(0, SHOWN).map((hit) => hitCells(hit, traceUrl))
  const body = html`<div id="recent" data-refresh>${table('Recent jobs', HEADS, rows, 'No job has ended.')}</div>`
  return { title: 'Recent jobs', body }
}

function failedHit({ enqueuedAt, failedAt, reasonGroup: _, ...job }: FailedJobPage['jobs'][number]): Hit {
  return { kind: 'job', state: 'failed', ...job, acceptedAt: enqueuedAt, endedAt: failedAt }
}

const endOf = ({ endedAt = '' }: Hit) => Date.parse(endedAt)
