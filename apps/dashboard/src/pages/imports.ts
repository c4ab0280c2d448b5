// The pages of imports whose callers do not wait: the list of imports, and one import with its failed items.
import { PROBLEMS, PROBLEMS_KEPT } from '@sluice/contract'
import type { ImportProblem, ListedImport } from '@sluice/queue'
import { html } from 'hono/html'
import { beginOf, type Cell, copyable, facts, moment, progress, table } from './layout.ts'
import type { Show } from './page.ts'

/** Lists the imports, unfinished ones first. */
export const importsPage: Show = async ({ view }) => {
  const rows = (await view.listImports()).map(importCells)
  const list = table('Imports', ['Import', 'Begun', 'Tenant', 'Items', 'Jobs done'], rows, 'No import.')
  const body = html`<p class="note">Imports whose callers do not wait. A finished one is listed for an hour.</p>
<div id="imports" data-refresh>${list}</div>`
  return { title: 'Imports', body }
}

function importCells({ id, tenant, received, jobs, jobsDone }: ListedImport): Cell[] {
  const link = html`<a class="id" href="/imports/${id}">${id}</a>`
  const bar = progress('Jobs done', jobs === undefined ? 0 : jobs === 0 ? 1 : jobsDone, jobs)
  const done = html`${bar} ${jobsDone}${jobs !== undefined && ` of ${jobs}`}`
  return [link, moment(beginOf(id)), tenant, received ?? 'still arriving', done]
}

/** Shows an import with its failed items. */
export const importPage: Show = async ({ view, params }) => {
  const id = String(params.id)
  const found = await view.findImport(id)
  if (found === undefined) return undefined
  const { tenant, done, received, counts, problems } = found
  const { created, updated, unchanged, failed } = counts
  const about = {
    Import: copyable(id),
    Tenant: tenant,
    Begun: moment(beginOf(id)),
    State: done ? 'done' : 'active',
    Items: received,
    Created: created,
    Updated: updated,
    Unchanged: unchanged,
    Failed: failed,
  }
  const rows = problems.map(problemCells)
  const failures = html`<h2>Failed items</h2>
${problems.length === PROBLEMS_KEPT && html`<p class="note">The first ${PROBLEMS_KEPT}.</p>`}
${table('Failed items', ['Item', 'Thread', 'Problem'], rows)}`
  const body = html`<div id="import" data-refresh>
${facts(about)}
${progress('Items done', created + updated + unchanged + failed, received)}
${rows.length > 0 && failures}
</div>`
  return { title: 'Import', body }
}

function problemCells({ index, line, externalId, refused, jobId }: ImportProblem): Cell[] {
  const detail = [refused?.detail, ...(refused?.errors ?? []).map(({ message }) => message)].join(' ')
  const problem =
    refused === undefined
      ? html`<a href="/jobs/${jobId}">${PROBLEMS.job_failed.title}</a>`
      : html`<code>${refused.code}</code> ${refused.title}. ${detail}`
  return [html`${index + 1}${line !== undefined && ` (line ${line})`}`, externalId, problem]
}
