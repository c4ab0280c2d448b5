// The page of operations: what was retried, discarded, paused and resumed, by whom, and how far it is; and the acts that open operations.
import type { Operation, OperationKind, OperationRequest } from '@sluice/contract'
import { asViewersSee, type FailedJobs, type Operations, OperationsFullError, orUnavailable } from '@sluice/queue'
import { html } from 'hono/html'
import { type Html, isOperator, moment, type Page, table, type Visit } from './layout.ts'

/** Shows the newest operations. */
export async function operationsPage(operations: Pick<Operations, 'list'>, visit: Visit): Promise<Page> {
  const listed = await orUnavailable(operations.list())
  const rows = (isOperator(visit) ? listed : listed.map(asViewersSee.operation)).map(operationRow)
  const body = html`<div id="operations" data-refresh>${
    rows.length === 0
      ? html`<p>Nothing was retried, discarded, paused or resumed.</p>`
      : table('Operations', ['Asked for', 'What', 'By', 'What of', 'Progress'], rows)
  }</div>`
  return { title: 'Operations', body }
}

function operationRow({ kind, state, by, filter, lane, createdAt, total, examined, done }: Operation): Html {
  if (lane !== undefined)
    return html`<tr><td>${moment(createdAt)}</td><td>${kind}</td><td>${by}</td><td>the ${lane} lane</td><td>${state}</td></tr>`
  const jobs =
    filter === undefined
      ? 'named ones'
      : Object.entries(filter).map(
          ([name, value]) => html`<div><span class="note">${name}</span> <span class="reason">${value}</span></div>`,
        )
  const past = kind === 'retry' ? 'retried' : 'discarded'
  return html`<tr><td>${moment(createdAt)}</td><td>${kind}</td><td>${by}</td><td>${jobs}</td>
<td><progress max="${Math.max(total, 1)}" value="${state === 'completed' ? Math.max(total, 1) : examined}" aria-label="Progress of the ${kind}"></progress>
${state}: ${done.toLocaleString('en')} ${past}, ${examined.toLocaleString('en')} of ${total.toLocaleString('en')} examined</td></tr>`
}

interface OpenDeps {
  operations: Pick<Operations, 'open'>
  failedJobs: Pick<FailedJobs, 'count'>
}

/** Opens an operation, which an API carries out, and returns its id, or undefined if too many are open. */
export async function openOperation(
  { operations, failedJobs }: OpenDeps,
  kind: OperationKind,
  request: OperationRequest,
  { visitor }: Visit,
): Promise<string | undefined> {
  const total = 'ids' in request ? request.ids.length : await orUnavailable(failedJobs.count(request.filter))
  try {
    return (await operations.open(kind, request, total, visitor.by)).id
  } catch (error) {
    if (error instanceof OperationsFullError) return undefined
    throw error
  }
}
