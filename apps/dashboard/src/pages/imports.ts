// The list of imports, and the page of an import with its failed items.
import { PROBLEMS } from '@sluice/contract'
import { duration } from '@sluice/operations'
import type { FoundImport, ImportProblem, ListedImport } from '@sluice/queue'
import { html } from 'hono/html'
import {
  age,
  beginOf,
  type Cell,
  copyable,
  facts,
  type Html,
  type PageHandler,
  plural,
  progress,
  reasonLine,
  shown,
  table,
  timeTag,
  type Visit,
} from './page.ts'

const HEADS = ['Import', 'Begun', 'Owner', 'State', '#Items', '#Stored', '#Failed', '#Items/s']

/**
 * Lists the imports: first the unfinished ones without a waiting caller, then the others by the
 * time of their last outcome.
 */
export const importsPage: PageHandler = async ({ view }) => {
  const rows = (await view.listImports()).map((one): Cell[] => {
    const link = html`<a class="id" href="/imports/${one.id}">${one.id}</a>`
    const failed =
      one.counts.failed > 0 ? html`<strong class="badge">${shown(one.counts.failed)}</strong>` : 0
    const stored = doneOf(one) - one.counts.failed
    return [
      link,
      html`${age(beginning(one.id, one))} ago`,
      ownerOf(one),
      stateOf(one),
      one.received,
      stored,
      failed,
      rateOf(one),
    ]
  })
  const body = html`<p class="note">An import is listed for a day after its last outcome. Requests with the same header <code>Import-Id</code>, as <code>sluice import</code> sends them, are one import.</p>
<div id="imports" data-refresh>${table('Imports', HEADS, rows, 'No import.')}</div>`
  return { title: 'Imports', body }
}

type Numbers = Omit<ListedImport, 'id'>

/**
 * Returns when an import began. If its caller waits, the caller may have chosen the id, which then
 * contains no time.
 */
function beginning(id: string, { isWaitedFor, begunAt }: Numbers): string {
  return !isWaitedFor || begunAt === undefined ? beginOf(id) : new Date(begunAt).toISOString()
}

function ownerOf({ tenant, by }: Numbers): Html {
  return html`${tenant}${by && html` <span class="note">key <span class="id">${by}</span></span>`}`
}

const doneOf = ({ counts: { created, updated, unchanged, failed } }: Numbers) =>
  created + updated + unchanged + failed

/** Returns how many items were done each second, from the first outcome to the last. */
function rateOf(one: Numbers): number | undefined {
  const ms = (one.changedAt ?? 0) - (one.begunAt ?? 0)
  return ms < 1_000 ? undefined : (doneOf(one) / ms) * 1_000
}

/**
 * Describes the progress of an import. How many items are still to come is known only if no caller
 * waits.
 */
export function stateOf(one: Numbers): Html {
  const { isWaitedFor, done, ended, again, received, changedAt } = one
  const at = changedAt && html` ${age(new Date(changedAt).toISOString())} ago`
  if (done && ended === 'cut')
    return html`<strong class="badge">stopped</strong>${at} after ${shown((received ?? 0) - again)} items`
  // Nobody knows whether the caller has sent the whole import.
  if (done) return ended === 'part' ? html`last request${at}` : html`ended${at}`
  if (isWaitedFor) return html`under way`
  if (received === undefined) return html`still arriving`
  const left = received - doneOf(one)
  const rate = rateOf(one)
  return html`${progress('Items done', received - left, received)} ${shown(left)} left${rate && html`, about ${duration((left / rate) * 1_000)}`}`
}

/** Shows an import with its failed items. */
export const importPage: PageHandler = async ({ view, params }) => {
  const id = String(params.id)
  const found = await view.findImport(id)
  if (found === undefined) return undefined
  const { received, counts, again, problems } = found
  const rate = rateOf(found)
  const about = {
    Import: copyable(id),
    Owner: ownerOf(found),
    Begun: timeTag(beginning(id, found)),
    State: stateOf(found),
    Items: received,
    Created: counts.created,
    Updated: counts.updated,
    Unchanged: counts.unchanged,
    Failed: counts.failed > 0 ? html`<strong class="badge">${shown(counts.failed)}</strong>` : 0,
    'Waits for': found.waitsFor && PROBLEMS[found.waitsFor].title,
    'To post again': again > 0 ? shown(again) : undefined,
    'Items/s': rate && shown(rate),
  }
  const reasons = await reasonsOf(view, found)
  const failures = html`<h2>Failed items</h2>
${counts.failed > problems.length && html`<p class="note">The first ${problems.length}.</p>`}
${table(
  'Failed items',
  [found.isWaitedFor ? 'Item of its request' : 'Item', 'Thread', 'Problem'],
  problems.map((problem) => problemCells(problem, reasons)),
)}`
  const body = html`<div id="import" data-refresh>${facts(about)}
${problems.length > 0 && failures}</div>`
  const by = found.by ? ` with key ${found.by}` : ''
  const title = `Import of ${found.tenant}${by}, ${plural(received ?? 0, 'item')}`
  return { title, trail: [html`<a href="/imports">Imports</a>`], body }
}

/**
 * The page shows the reasons of at most this number of failed jobs, which is enough for most
 * imports.
 */
const JOBS_READ = 20

/** Returns why the threads of failed jobs could not be stored, by job and externalId. */
async function reasonsOf(
  view: Visit['view'],
  { problems }: FoundImport,
): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(problems.flatMap(({ jobId }) => jobId ?? []))].slice(0, JOBS_READ)
  const jobs = await Promise.all(ids.map(view.readJob))
  return new Map(
    jobs.flatMap((job) =>
      (job?.failedThreads ?? []).map(({ externalId, reason }) => [
        `${job?.hit.id} ${externalId}`,
        reason,
      ]),
    ),
  )
}

function problemCells(
  { index, line, externalId, refused, jobId }: ImportProblem,
  reasons: ReadonlyMap<string, string>,
): Cell[] {
  const errors = refused?.errors?.map(({ message }) => message).join(' ')
  const reason = reasons.get(`${jobId} ${externalId}`)
  const problem =
    refused === undefined
      ? html`<a href="/jobs/${jobId}">${PROBLEMS.job_failed.title}</a>${reason && html` ${reasonLine(reason)}`}`
      : html`<code>${refused.code}</code> ${errors || refused.detail || refused.title}`
  const thread =
    externalId !== undefined &&
    html`<a href="/find?q=${encodeURIComponent(externalId)}">${externalId}</a>`
  return [html`${index + 1}${line !== undefined && ` (line ${line})`}`, thread, problem]
}
