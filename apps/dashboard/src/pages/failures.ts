// The pages of failed jobs: grouped by their reason, the jobs of one reason, and the questions before a discard.
import { hash } from 'node:crypto'
import type { FailedJobGroups, FailedJobPage } from '@sluice/contract'
import { asViewersSee, type FailedJobs, orUnavailable } from '@sluice/queue'
import { html } from 'hono/html'
import { actForm, count, facts, type Html, isOperator, moment, type Page, table, type Visit } from './layout.ts'

type Group = FailedJobGroups['groups'][number]

/** Pages that refresh themselves share one grouping: that of 100,000 jobs takes a second or two. */
const SHARED_MS = 2_000
const JOBS_SHOWN = 50

/** Makes the pages of the failed jobs. */
export function failurePages({ failedJobs }: { failedJobs: Pick<FailedJobs, 'groups' | 'list'> }) {
  let last: { at: number; groups: Promise<FailedJobGroups> } | undefined

  async function groupsFor(visit: Visit): Promise<FailedJobGroups> {
    if (last === undefined || performance.now() - last.at > SHARED_MS)
      last = { at: performance.now(), groups: orUnavailable(failedJobs.groups({})) }
    const groups = await last.groups
    return isOperator(visit) ? groups : asViewersSee.groups(groups)
  }

  async function findGroup(visit: Visit): Promise<Group | undefined> {
    const { groups } = await groupsFor(visit)
    return groups.find(({ reasonGroup }) => nameOf(reasonGroup) === visit.params.group)
  }

  return {
    async groups(visit: Visit): Promise<Page> {
      const { groups, isComplete } = await groupsFor(visit)
      const body = html`<div id="groups" data-refresh>
${isComplete ? '' : html`<p class="note">There are more: these are the largest of the newest failures.</p>`}
${groups.length === 0 ? html`<p>No failed job.</p>` : table('Failed jobs by reason', HEADS, groups.map(groupRow))}
</div>`
      return { title: 'Failures by reason', body }
    },

    async group(visit: Visit): Promise<Page> {
      const group = await findGroup(visit)
      if (group === undefined) return GONE
      const { reasonGroup, jobs, threads, newestAt, oldestAt, reason } = group
      const page = await orUnavailable(failedJobs.list({ filter: { reasonGroup }, limit: JOBS_SHOWN }))
      const shown = isOperator(visit) ? page : asViewersSee.page(page)
      const about = { Jobs: jobs, Threads: threads, Newest: moment(newestAt), Oldest: moment(oldestAt) }
      const body = html`<p class="reason">${reasonGroup}</p>
<div id="about" data-refresh>${facts({ ...about, Sample: html`<span class="reason">${reason}</span>` })}</div>
${isOperator(visit) && actsOf(visit, group)}
<h2>${jobs > JOBS_SHOWN ? `The newest ${JOBS_SHOWN} jobs` : 'Jobs'}</h2>
<div id="jobs" data-refresh>${table('Failed jobs', ['Job', 'Tenant', 'Threads', 'Tries', 'Failed'], shown.jobs.map(jobRow))}</div>`
      return { title: 'Failures of one reason', body }
    },

    /** Asks before all jobs of a reason are discarded. */
    async askDiscard(visit: Visit): Promise<Page> {
      const group = await findGroup(visit)
      if (group === undefined) return GONE
      const { reasonGroup, jobs, threads, newestAt } = group
      const numbers = `${count(jobs, 'job')} with ${count(threads, 'thread')}`
      const body = html`<p class="reason">${reasonGroup}</p>
<p class="problem">This removes ${numbers} for good. What their requests brought is lost.</p>
<div class="acts">${actForm(visit, '/failures/discard', html`${filterFields(reasonGroup, newestAt)}<button class="danger">Discard ${count(jobs, 'job')}</button>`)}
<a class="button quiet" href="/failures/${nameOf(reasonGroup)}">Keep them</a></div>`
      return { title: `Discard ${count(jobs, 'job')}?`, body }
    },
  }
}

const HEADS = ['Reason', 'Jobs', 'Threads', 'Newest', 'Oldest']

const GONE: Page = {
  title: 'No failed job has this reason',
  body: html`<p>They were retried or discarded: see <a href="/operations">operations</a>, or <a href="/failures">the other failures</a>.</p>`,
  status: 404,
}

/** A reason may be longer than an address may be. */
function nameOf(reasonGroup: string): string {
  return hash('sha256', reasonGroup).slice(0, 16)
}

function groupRow({ reasonGroup, jobs, threads, newestAt, oldestAt }: Group): Html {
  return html`<tr><td><a class="reason" href="/failures/${nameOf(reasonGroup)}">${reasonGroup || '(no reason)'}</a></td>
<td>${jobs.toLocaleString('en')}</td><td>${threads.toLocaleString('en')}</td><td>${moment(newestAt)}</td><td>${moment(oldestAt)}</td></tr>`
}

function jobRow({ id, name, tenant, threads, attempts, failedAt }: FailedJobPage['jobs'][number]): Html {
  return html`<tr><td><a href="/jobs/${id}">${name}</a></td><td>${tenant}</td><td>${threads}</td><td>${attempts}</td><td>${moment(failedAt)}</td></tr>`
}

function actsOf(visit: Visit, { reasonGroup, jobs, newestAt }: Group): Html {
  const retry = html`${filterFields(reasonGroup, newestAt)}<button>Retry ${count(jobs, 'job')}</button>`
  return html`<div class="acts">${actForm(visit, '/failures/retry', retry)}
<a class="button danger" href="/failures/${nameOf(reasonGroup)}/discard">Discard …</a></div>`
}

/** The jobs that the page names, and none that fail later. */
function filterFields(reasonGroup: string, until: string): Html {
  return html`<input type="hidden" name="reasonGroup" value="${reasonGroup}"><input type="hidden" name="until" value="${until}">`
}
