// The pages of failed jobs, by reason, with the forms that retry or discard all jobs of one reason. The page of
// operations: what was retried, discarded, paused and resumed, by whom, and with what progress.
import { hash } from 'node:crypto'
import type { FailedJobGroups, FailedJobPage, Operation } from '@sluice/contract'
import { html } from 'hono/html'
import { actForm, type Cell, count, discardForm, facts, moment, progress, shown, table } from './layout.ts'
import { type Html, isOperator, type Page, type Show, type Visit } from './page.ts'

type Group = FailedJobGroups['groups'][number]

const JOBS_SHOWN = 50

/** Shows the groups, those with the most threads first. */
export const groupsPage: Show = async ({ view }) => {
  const { groups, isComplete } = await view.readGroups()
  const heads = ['Reason', '#Jobs', '#Failed threads', 'Newest', 'Oldest']
  const body = html`<div id="groups" data-refresh>
${!isComplete && html`<p class="note">There are more: these are the largest of the newest failures.</p>`}
${table('Failed jobs by reason', heads, groups.map(groupCells), 'No failed job.')}
</div>`
  return { title: 'Failures by reason', body }
}

/** Shows the group that the path names, with its newest jobs. */
export const groupPage: Show = async (visit) => {
  const { groups } = await visit.view.readGroups()
  const group = groups.find(({ reasonGroup }) => nameOf(reasonGroup) === visit.params.group)
  if (group === undefined) return GONE
  const { reasonGroup, jobs, threads, newestAt, oldestAt, reason } = group
  const { jobs: newest } = await visit.view.listFailed({ filter: { reasonGroup }, limit: JOBS_SHOWN })
  const about = { Jobs: jobs, 'Failed threads': threads, Newest: moment(newestAt), Oldest: moment(oldestAt) }
  const heads = ['Job', 'Tenant', '#Failed threads', '#Tries', 'Failed']
  const body = html`<p class="reason">${reasonGroup}</p>
<div id="about" data-refresh>${facts(about)}<h2>Sample</h2><p class="reason">${reason}</p></div>
${isOperator(visit) && actsOf(visit, group)}
<h2>${jobs > JOBS_SHOWN ? `The newest ${JOBS_SHOWN} jobs` : 'Jobs'}</h2>
<div id="jobs" data-refresh>${table('Failed jobs', heads, newest.map(jobCells))}</div>`
  return { title: 'Failures of one reason', body }
}

const GONE: Page = {
  title: 'No failed job has this reason',
  body: html`<p>They were retried or discarded: see <a href="/operations">operations</a>, or <a href="/failures">the other failures</a>.</p>`,
  status: 404,
}

/** A hash, because a reason may be longer than an address may be. */
function nameOf(reasonGroup: string): string {
  return hash('sha256', reasonGroup).slice(0, 16)
}

function groupCells({ reasonGroup, jobs, threads, newestAt, oldestAt }: Group): Cell[] {
  const link = html`<a class="reason" href="/failures/${nameOf(reasonGroup)}">${reasonGroup || '(no reason)'}</a>`
  return [link, jobs, threads, moment(newestAt), moment(oldestAt)]
}

function jobCells({
  id,
  name,
  tenant,
  failedThreadCount = 0,
  attempts,
  failedAt,
}: FailedJobPage['jobs'][number]): Cell[] {
  return [html`<a href="/jobs/${id}">${name}</a>`, tenant, failedThreadCount, attempts, moment(failedAt)]
}

function actsOf(visit: Visit, group: Group): Html {
  // The fields select the jobs that the page counts, and none that fail later.
  const fields = html`<input type="hidden" name="reasonGroup" value="${group.reasonGroup}"><input type="hidden" name="until" value="${group.newestAt}">`
  const retry = html`${fields}<button>Retry ${count(group.jobs, 'job')}</button>`
  return html`<div class="acts">${actForm(visit, '/failures/retry', retry)}
${discardForm(visit, '/failures/discard', group, fields)}</div>`
}

const HEADS = ['Asked for', 'What', 'By', 'What of', 'Progress']

/** Shows the newest operations. */
export const operationsPage: Show = async ({ view }) => {
  const rows = (await view.listOperations()).map(operationCells)
  const list = table('Operations', HEADS, rows, 'Nothing was retried, discarded, paused or resumed.')
  return { title: 'Operations', body: html`<div id="operations" data-refresh>${list}</div>` }
}

function operationCells({ kind, state, by, filter, lane, createdAt, total, examined, done }: Operation): Cell[] {
  const asked = [moment(createdAt), kind, by]
  if (lane !== undefined) return [...asked, `the ${lane} lane`, state]
  const jobs =
    filter === undefined
      ? 'named ones'
      : Object.entries(filter).map(
          ([name, value]) => html`<div><span class="note">${name}</span> <span class="reason">${value}</span></div>`,
        )
  const bar = progress(`Progress of the ${kind}`, state === 'completed' ? Math.max(total, 1) : examined, total)
  const past = kind === 'retry' ? 'retried' : 'discarded'
  const numbers = `${state}: ${shown(done)} ${past}, ${shown(examined)} of ${shown(total)} examined`
  return [...asked, jobs, html`${bar} ${numbers}`]
}
