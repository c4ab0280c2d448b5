// Shows the verdict on each page: a line for each finding, with its cause, the next step, and a
// link or button for it.
import type { Finding, Status } from '@sluice/contract'
import { html } from 'hono/html'
import { actForm, type Html, isOperator, plural, type Session } from './page.ts'

const MORE_WORKERS = 'If all workers are busy, start more.'

/** The next step, unless the finding itself says it. */
const NEXT: Readonly<Partial<Record<Finding['code'], string>>> = {
  other_store: 'Correct its MONGODB_URL or its QUEUE.',
  store_away: 'Nothing is lost. Bring MongoDB back, and the jobs go on by themselves.',
  store_unstable: 'Check the network between workers and MongoDB.',
  store_slow: 'Look for slow operations, and at the disk of MongoDB.',
  process_missing: 'Start one.',
  crash_loop: 'The last line of its log says why it died.',
  process_gone: 'Start another one. The end of its log says why it died.',
  process_stuck: 'Look at the thread, and at the log of the worker.',
  redis_full: 'Raise maxmemory, or start more workers.',
  redis_replicas: 'Bring the replicas back.',
  redis_clock: 'Synchronize the clocks (NTP).',
  callers_time_out: MORE_WORKERS,
  requests_refused: MORE_WORKERS,
  queue_full: 'Resume lanes that are paused, or start more workers.',
  lane_paused: 'Jobs wait until it is resumed.',
  jobs_old: MORE_WORKERS,
  versions_differ: 'Finish the rollout, or roll it back.',
  completions_refused: 'The error is Redis’s: mend it, and the jobs go on by themselves.',
  threads_failing: 'Fix the cause, then retry them.',
  failed_threads: 'Fix the cause, then retry them.',
  key_revoked: 'Give its caller another key.',
}

/** The text of a link to a page, by the beginning of the page's path. */
const LABELS = Object.entries({
  '/overview#processes': 'Show the processes',
  '/overview#tenants': 'Show the tenants',
  '/overview': 'Show the overview',
  '/processes/': 'Show the process',
  '/tenants/': 'Show the tenant',
  '/jobs': 'Show the jobs',
})

/**
 * At most this number of findings with the same code is shown. The others are behind a disclosure.
 */
const SHOWN_ALIKE = 2

/**
 * Shows what is wrong, the worst first, or that all is well.
 * @param path the path of the page.
 */
export function verdictOf(status: Status, session: Session, path: string): Html {
  const { verdict = [] } = status
  const isWell = verdict.every(({ level }) => level === 'note')
  const tone = !isWell ? 'problem' : verdict.length > 0 ? 'note' : 'well'
  const items = [...Map.groupBy(verdict, ({ code }) => code).values()].map((alike) => {
    const lines = alike.map(
      (one) => html`<li data-level="${one.level}">${line(one, status, session, path)}</li>`,
    )
    const others = lines.slice(SHOWN_ALIKE)
    const more = html`<li><details><summary class="note">${others.length} more like this</summary><ul>${others}</ul></details></li>`
    return html`${lines.slice(0, SHOWN_ALIKE)}${others.length > 0 && more}`
  })
  return html`<section id="verdict" data-level="${tone}" aria-label="Verdict" data-refresh>${isWell && html`<p>All is well${items.length > 0 && ', except:'}</p>`}${items.length > 0 && html`<ul>${items}</ul>`}</section>`
}

function line({ code, text, page }: Finding, status: Status, session: Session, path: string) {
  const { queued, verdict = [] } = status
  // More workers don't help while MongoDB is unavailable.
  const isAway = verdict.some((one) => one.code === 'store_away')
  const next = isAway && NEXT[code] === MORE_WORKERS ? undefined : NEXT[code]
  const failed = queued.reduce(
    (sum, { state, threads, jobs }) => sum + (state === 'failed' ? threads || jobs : 0),
    0,
  )
  const [, label] = LABELS.find(([begin]) => page.startsWith(begin)) ?? []
  const name = label ?? `Show ${plural(failed, 'failure')}`
  const link = page !== path && html` <a class="button quiet" href="${page}">${name}</a>`
  const lane =
    code === 'lane_paused' &&
    isOperator(session) &&
    new URLSearchParams(page.split('?')[1]).get('lane')
  const resume =
    lane && actForm(session, `/lanes/${lane}/resume`, html`<button>Resume ${lane}</button>`)
  return html`<span>${text}.${next && html` <span class="note">${next}</span>`}</span>${link}${resume}`
}
