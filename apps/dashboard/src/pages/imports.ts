// The pages of imports whose callers do not wait: a list with their progress, and one with its failed items.
import { PROBLEMS, PROBLEMS_KEPT } from '@sluice/contract'
import { type ImportProblem, type Imports, isJobId, type ListedImport, orUnavailable } from '@sluice/queue'
import { html } from 'hono/html'
import { beginOf, facts, type Html, isOperator, moment, type Page, table, type Visit } from './layout.ts'

/** Lists the imports, unfinished ones first. */
export async function importsPage(imports: Pick<Imports, 'list'>): Promise<Page> {
  const rows = (await orUnavailable(imports.list())).map(importRow)
  const body = html`<p class="note">Imports whose callers do not wait. A finished one is listed for an hour.</p>
<div id="imports" data-refresh>${
    rows.length === 0
      ? html`<p>No import.</p>`
      : table('Imports', ['Import', 'Begun', 'Tenant', 'Items', 'Jobs done'], rows)
  }</div>`
  return { title: 'Imports', body }
}

function importRow({ id, tenant, received, jobs, jobsDone }: ListedImport): Html {
  const isKnown = jobs !== undefined
  return html`<tr><td><a class="id" href="/imports/${id}">${id}</a></td><td>${moment(beginOf(id))}</td><td>${tenant ?? ''}</td>
<td>${received?.toLocaleString('en') ?? 'still arriving'}</td>
<td><progress max="${Math.max(jobs ?? 1, 1)}" value="${isKnown ? (jobs === 0 ? 1 : jobsDone) : 0}" aria-label="Jobs done"></progress> ${jobsDone}${isKnown ? ` of ${jobs}` : ''}</td></tr>`
}

/** Shows an import with its failed items. */
export async function importPage(imports: Pick<Imports, 'find'>, visit: Visit): Promise<Page | undefined> {
  const id = String(visit.params.id)
  const found = isJobId(id) ? await orUnavailable(imports.find(id)) : undefined
  if (found === undefined) return undefined
  const { tenant, done, received, counts, problems } = found
  const about = {
    Import: id,
    Tenant: tenant,
    Begun: moment(beginOf(id)),
    State: done ? 'done' : 'active',
    Items: received,
  }
  const { created, updated, unchanged, failed } = counts
  const stored = created + updated + unchanged
  const body = html`<div id="import" data-refresh>
${facts({ ...about, Created: created, Updated: updated, Unchanged: unchanged, Failed: failed })}
<progress max="${Math.max(received, 1)}" value="${stored + failed}" aria-label="Items done"></progress>
${
  problems.length > 0 &&
  html`<h2>Failed items</h2>${problems.length === PROBLEMS_KEPT && html`<p class="note">The first ${PROBLEMS_KEPT}.</p>`}
${table(
  'Failed items',
  ['Item', 'Thread', 'Problem'],
  problems.map((problem) => problemRow(problem, visit)),
)}`
}
</div>`
  return { title: 'Import', body }
}

function problemRow({ index, line, externalId, refused, jobId }: ImportProblem, visit: Visit): Html {
  // A detail may quote a value.
  const detail = isOperator(visit)
    ? [refused?.detail, ...(refused?.errors ?? []).map(({ message }) => message)].join(' ')
    : ''
  const problem =
    refused === undefined
      ? html`<a href="/jobs/${jobId}">${PROBLEMS.job_failed.title}</a>`
      : html`<code>${refused.code}</code> ${refused.title}. ${detail}`
  return html`<tr><td>${index + 1}${line !== undefined && ` (line ${line})`}</td><td>${externalId ?? ''}</td><td>${problem}</td></tr>`
}
