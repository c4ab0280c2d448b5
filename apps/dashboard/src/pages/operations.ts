// The page of operations: what was retried, discarded, paused and resumed, by whom, and how far it is.
import type { Operation } from '@sluice/contract'
import { asViewersSee, orUnavailable } from '@sluice/queue'
import { html } from 'hono/html'
import { type Cell, moment, progress, shown, table } from './layout.ts'
import { isOperator, type Show } from './page.ts'

const HEADS = ['Asked for', 'What', 'By', 'What of', 'Progress']

/** Shows the newest operations. */
export const operationsPage: Show = async (visit, { operations }) => {
  const listed = await orUnavailable(operations.list())
  const rows = (isOperator(visit) ? listed : listed.map(asViewersSee.operation)).map(operationCells)
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
