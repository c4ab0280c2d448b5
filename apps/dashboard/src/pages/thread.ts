// The page of a thread: the stored thread, the jobs that wrote it, and its jobs in the queue with
// their attempts.
import { type FindQuery, parseFindQuery, parsePageQuery } from '@sluice/contract'
import type { Acts, ThreadOutline, ThreadPage, Writing } from '@sluice/operations'
import { sourceIdOf } from '@sluice/store/ids'
import { CommandFailedError } from '@sluice/store/read'
import { html } from 'hono/html'
import { hitsTable } from './find.ts'
import { historyOf } from './jobs.ts'
import {
  actForm,
  beginOf,
  type Cell,
  copyable,
  facts,
  type Html,
  isOperator,
  type PageHandler,
  plural,
  shown,
  table,
  tenantLink,
  timeTag,
  type Visit,
} from './page.ts'

/** The page shows the attempts of at most this number of failed jobs, and links to the others. */
const HISTORIES = 5

/**
 * Shows the thread that the query names.
 * @param acts if present, the texts are shown.
 */
export async function threadPage(visit: Visit, acts?: Acts): ReturnType<PageHandler> {
  const { view, gone } = visit
  const { tenant = '', service = '', externalId = '', ...more } = Object.fromEntries(visit.query)
  const jobs = parseFindQuery(Object.entries({ q: externalId, tenant, service }))
  const query = parsePageQuery(Object.entries(more))
  if (!jobs.ok || !query.ok || jobs.value.service === undefined) return undefined
  const id = sourceIdOf(tenant, { service: jobs.value.service, externalId })
  const about = facts({
    Thread: `${service}/${externalId}`,
    Tenant: tenantLink(tenant),
    Id: copyable(id),
  })
  let title = `${service}/${externalId}`
  let stored = html`<p>It is not stored.</p>`
  try {
    const found = await (acts?.revealThread ?? view.readThread)(tenant, id, query.value, gone)
    if (found !== undefined) stored = storedThread(found, visit, acts !== undefined)
    if (found !== undefined && 'title' in found.source) title = String(found.source.title)
  } catch (error) {
    if (!(error instanceof CommandFailedError)) throw error
    stored = html`<p class="problem">MongoDB is unavailable or too slow: what is stored can’t be shown.</p>`
  }
  const trail = [html`<a href="/">Find</a>`, tenantLink(tenant), html`${service}`]
  return { title, trail, body: html`${about}${stored}${await jobsOf(jobs.value, visit)}` }
}

/** Shows the jobs of a thread, and the attempts of the failed ones. */
async function jobsOf(query: FindQuery, { view, gone, traceUrl }: Visit): Promise<Html> {
  const { hits, ...found } = await view.find(query, gone)
  const jobs = hits.filter(({ kind }) => kind === 'job')
  const failed = jobs.filter(({ state }) => state === 'failed').slice(0, HISTORIES)
  const histories = failed.map(async ({ id }) => {
    const job = await view.readJob(id)
    const history = job && historyOf(job)
    return (
      history &&
      html`<section aria-label="Job ${id}"><h2>Failed: <a href="/jobs/${id}">job ${id}</a></h2>${history}</section>`
    )
  })
  // The page is headed by the name, which may be long.
  const nameless = jobs.map(({ name: _, ...job }) => job)
  return html`<h2>Waiting, active, failed and recent jobs</h2>
${hitsTable({ ...found, hits: nameless }, traceUrl)}${await Promise.all(histories)}`
}

/** @param isRevealed whether the thread has its texts. */
function storedThread(thread: ThreadOutline | ThreadPage, visit: Visit, isRevealed: boolean): Html {
  const { source, quotes, next, writings, unfinished } = thread
  const { status, wordCount, createdAt, id: _, service: __, externalId: ___, ...texts } = source
  const query = new URLSearchParams(visit.query)
  const reveal = actForm(
    visit,
    `/thread/reveal?${query}`,
    html`<button class="quiet">Reveal the texts</button>`,
  )
  const deletion = html`<details><summary class="button danger">Delete …</summary>
<p class="problem">This deletes the thread with all its quotes for good.</p>
${actForm(visit, `/thread/delete?${query}`, html`<button class="danger">Delete the thread</button>`)}</details>`
  query.set('after', next ?? '')
  const hasDates = quotes.some(({ createdAt: at }) => at !== undefined)
  const rows = quotes.map(({ id, externalId, createdAt: at, position: __, ...fields }): Cell[] => {
    return [
      externalId ?? id,
      ...(hasDates ? [at && timeTag(at)] : []),
      ...(isRevealed ? [fieldsOf(fields)] : []),
    ]
  })
  const [newest] = writings
  const about = {
    Status: status,
    Stored: unfinished && 'in part',
    Quotes: shown(writings.reduce((sum, { inserted }) => sum + inserted, 0)),
    Words: shown(wordCount),
    Created: timeTag(createdAt),
    'Last changed': newest && timeTag(beginOf(newest.request)),
  }
  return html`${facts(about)}
${unfinished && partialWords(unfinished)}
${isRevealed ? fieldsOf(texts) : isOperator(visit) && html`<div class="acts">${reveal}${deletion}</div>`}
<h2>Quotes</h2>
${table('Quotes', ['Quote', ...(hasDates ? ['Date'] : []), ...(isRevealed ? ['As stored'] : [])], rows)}
${next && html`<p><a href="/thread?${query}">Next quotes</a></p>`}
<h2>Written by</h2>
${table('Jobs that wrote it', ['Accepted', 'Job', 'What'], writings.slice(0, WRITINGS).map(writingCells))}
${writings.length > WRITINGS && html`<p class="note">The newest ${WRITINGS}.</p>`}`
}

const WRITINGS = 50

function partialWords({ request, since }: NonNullable<ThreadPage['unfinished']>): Html {
  const [job = ''] = request.split('.')
  return html`<p class="problem">This thread is stored in part: a worker began to write it ${timeTag(since)} and has not finished.
<a href="/jobs/${job}">Its job</a> finishes it when it is delivered again. If the job is gone, post the thread again, or run <code>sluice doctor --repair</code>.</p>`
}

/** Shows fields as they are stored. Texts may have several lines. */
function fieldsOf(fields: object): Html {
  const shown = Object.entries(fields).filter(([, value]) => value !== null)
  return html`${shown.map(([name, value]) => html`<div class="text"><span class="note">${name}</span> ${String(value)}</div>`)}`
}

function writingCells({ request, source, inserted, changed }: Writing): Cell[] {
  const [job = ''] = request.split('.')
  const did = [
    source && `${source} the source`,
    inserted > 0 && `inserted ${plural(inserted, 'quote')}`,
    changed > 0 && `last changed ${plural(changed, 'quote')}`,
  ]
  return [
    timeTag(beginOf(job)),
    html`<a class="id" href="/jobs/${job}">${request}</a>`,
    did.filter(Boolean).join(', '),
  ]
}
