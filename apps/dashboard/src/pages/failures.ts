// The pages of failed jobs by reason, with forms that retry or discard all jobs with the same
// reason. Also the page of operations: who retried, discarded, paused or resumed what, and how far
// each has got.
import {
  durationSeconds,
  type FailedJobGroups,
  type Operation,
  parseFailedJobFilter,
  SERVICES,
} from '@sluice/contract'
import { reasonWords } from '@sluice/operations'
import { html } from 'hono/html'
import { choice, filters, jobTable, tenantField, tenantsOf } from './find.ts'
import {
  actForm,
  age,
  type Cell,
  copyable,
  discardForm,
  facts,
  type Html,
  inputOf,
  invalidPage,
  isOperator,
  type Page,
  type PageHandler,
  plural,
  progress,
  rawReason,
  reasonLine,
  shown,
  table,
  timeTag,
  type Visit,
} from './page.ts'

type Group = FailedJobGroups['groups'][number]

/**
 * Shows the groups of all failed jobs, or of the jobs that match a filter. The groups with the most
 * threads come first.
 */
export const groupsPage: PageHandler = async (visit) => {
  const { view, query } = visit
  const input = inputOf(query)
  const { last, ...given } = input
  const filter = parseFailedJobFilter(Object.entries({ ...given, ...(last && sinceOf(last)) }))
  const form = filterForm(input, await tenantsOf(visit))
  if (!filter.ok) return invalidPage('Failures', filter.errors, form)
  const isFiltered = Object.keys(filter.value).length > 0
  const { groups, isComplete } = await (isFiltered
    ? view.groupFailed(filter.value)
    : view.readGroups())
  const body = html`${form}<div id="groups" data-refresh>
${!isComplete && html`<p class="note">There are more: these are the largest of the newest failures.</p>`}
${groupTable(groups)}
</div>`
  return { title: 'Failures', body }
}

function filterForm(input: Readonly<Record<string, string>>, tenants: Html): Html {
  const { tenant, service, last } = input
  const fields = html`${tenantField(tenant)}${tenants}
${choice('service', 'Service', SERVICES, service)}
${choice('last', 'Failed within', ['1h', '24h', '7d'], last)}`
  return filters('/failures', Object.keys(input).length > 0, fields)
}

/** A text that is no duration is refused as a time. */
function sinceOf(last: string): { since: string } {
  const seconds = durationSeconds(last)
  return { since: seconds ? new Date(Date.now() - seconds * 1_000).toISOString() : last }
}

/** Shows the group that the path names, with its newest jobs. */
export const groupPage: PageHandler = async (visit) => {
  const { groups } = await visit.view.readGroups()
  const group = groups.find(({ id }) => id === visit.params.group)
  if (group === undefined) return NO_SUCH_GROUP
  const { id, jobs, threads, hours, newestAt, oldestAt, reason, reasonGroup } = group
  const { jobs: newest, next } = await visit.view.listJobs({ state: 'failed', group: id })
  const about = {
    Group: copyable(id),
    Jobs: jobs,
    'Failed threads': threads,
    'Last 24 h': trend(hours),
    Newest: timeTag(newestAt),
    Oldest: timeTag(oldestAt),
  }
  const body = html`<div id="about" data-refresh>${rawReason(reason)}${facts(about)}</div>
${isOperator(visit) && actsOf(visit, group)}
<h2>${next === undefined ? 'Jobs' : `The newest ${newest.length} jobs`}</h2>
<div id="jobs" data-refresh>${jobTable('Failed jobs', newest, { isOneReason: true })}</div>
<p><a href="/jobs?state=failed&group=${id}">Select jobs${next !== undefined && ', and see the older ones'}</a></p>`
  return {
    title: reasonWords(reasonGroup).slice(0, TITLE_CHARACTERS).replaceAll('`', ''),
    trail: [html`<a href="/failures">Failures</a>`],
    body,
  }
}

/** A longer reason is cut. The whole is behind a disclosure. */
const TITLE_CHARACTERS = 300

const NO_SUCH_GROUP: Page = {
  title: 'No failed job has this reason',
  body: html`<p>They were retried or discarded: see <a href="/operations">operations</a>, or <a href="/failures">the other failures</a>.</p>`,
  status: 404,
}

/** Groups of failed jobs, each with a link to its page. */
export function groupTable(groups: readonly Group[]): Html {
  const heads = ['Reason', '#Jobs', '#Failed threads', 'Last 24 h', 'Newest', 'Oldest']
  const list = table('Failed jobs by reason', heads, groups.map(groupCells), 'No failed job.')
  return html`<div class="groups">${list}</div>`
}

function groupCells({ id, reasonGroup, jobs, threads, hours, newestAt, oldestAt }: Group): Cell[] {
  const link = html`<a href="/failures/${id}">${reasonLine(reasonGroup)}</a>`
  return [link, jobs, threads, trend(hours), html`${age(newestAt)} ago`, html`${age(oldestAt)} ago`]
}

/** Draws a bar for each of the last hours. Says the numbers of the last two hours in words. */
function trend(hours: readonly number[]): Html {
  const most = Math.max(...hours, 1)
  const bars = hours.map((jobs, at) => {
    const height = jobs === 0 ? 0 : Math.max((jobs / most) * 20, 2)
    return html`<rect x="${at * 5}" y="${(20 - height).toFixed(1)}" width="4" height="${height.toFixed(1)}"/>`
  })
  const [before = 0, last = 0] = hours.slice(-2)
  const text = `${plural(last, 'job')} in the last hour, ${shown(before)} in the hour before`
  return html`<svg class="trend" viewBox="0 0 120 20" role="img" aria-label="${text}">${bars}</svg><div class="note">${text}</div>`
}

function actsOf(visit: Visit, group: Group): Html {
  // These fields select the jobs that the page counts, and no jobs that fail later.
  const fields = html`<input type="hidden" name="group" value="${group.id}"><input type="hidden" name="until" value="${group.newestAt}">`
  const retry = html`${fields}<button>Retry ${plural(group.jobs, 'job')}</button>`
  return html`<div class="acts">${actForm(visit, '/failures/retry', retry)}
${discardForm(visit, '/failures/discard', group, fields)}</div>`
}

const PAST = { retry: 'retried', discard: 'discarded' } as const

const HEADS = ['Asked for', 'What', 'By', 'Applies to', 'Progress']

/** Shows the newest operations. */
export const operationsPage: PageHandler = async ({ view }) => {
  const rows = (await view.listOperations()).map(operationCells)
  const list = table('Operations', HEADS, rows, 'No operation has been asked for.')
  return { title: 'Operations', body: html`<div id="operations" data-refresh>${list}</div>` }
}

function operationCells(of: Operation): Cell[] {
  const { id, kind, state, by, filter, lane, why, createdAt, total, examined, done } = of
  const asked = [html`<span id="${id}">${timeTag(createdAt)}</span>`, kind, by]
  if (lane !== undefined || kind === 'pause' || kind === 'resume')
    return [
      ...asked,
      html`the ${lane} lane ${why && html`<span class="reason">${why}</span>`}`,
      state,
    ]
  // The reason describes a group. Its `until` only leaves out later failures, so it is not shown.
  const { group, until, ...others } = filter ?? {}
  const reason =
    group &&
    html`<a href="/failures/${group}">${reasonLine(of.reasonGroup ?? `group ${group}`)}</a>`
  const jobs = html`${filter === undefined && plural(total, 'selected job')}${reason}
${Object.entries(group ? others : (filter ?? {})).map(([name, value]) => html`<div><span class="note">${name}</span> <span class="reason">${value}</span></div>`)}`
  if (kind === 'erase') return [...asked, jobs, html`${state}: ${plural(done, 'quote')} erased`]
  if (kind === 'delete' || kind === 'retain')
    return [...asked, jobs, html`${state}: ${plural(done, 'thread')} deleted`]
  const bar = progress(
    `Progress of the ${kind}`,
    state === 'completed' ? Math.max(total, 1) : examined,
    total,
  )
  const past = PAST[kind]
  const so = state !== 'completed' && `, ${shown(examined)} of ${shown(total)} examined`
  const none =
    state === 'completed' &&
    done === 0 &&
    ' (nothing left to do: all were retried or discarded before)'
  const numbers = html`${state}: ${shown(done)}${filter === undefined && ` of ${shown(total)}`} ${past}${so}${none}`
  return [...asked, jobs, html`${bar} ${numbers}${kind === 'retry' && outcomesOf(id, of)}`]
}

/** Shows the outcomes of the retried jobs, with links to them. */
function outcomesOf(
  id: string,
  { done, stored = 0, failedAgain = 0 }: Pick<Operation, 'done' | 'stored' | 'failedAgain'>,
): Html {
  const left = Math.max(done - stored - failedAgain, 0)
  return html`<div><a href="/jobs?state=completed">${shown(stored)} stored</a>,
<a href="/jobs?state=failed&operation=${id}">${shown(failedAgain)} failed again</a>${left > 0 && html`, <a href="/jobs?state=waiting">${shown(left)} on their way</a>`}</div>`
}
