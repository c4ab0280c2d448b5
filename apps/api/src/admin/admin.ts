// Handlers of the routes under `/admin`, which cover all tenants. The caller's role decides what it
// may see and do.
import * as contract from '@sluice/contract'
import { failedJobOf, requireActs, type View } from '@sluice/operations'
import type { ApiDeps } from '../api-deps.ts'
import { type BodyDeps, readBody } from '../body/read-body.ts'
import { ProblemError, requestInvalid } from '../request/problem-error.ts'
import type { Handler, PathParams, RequestContext } from '../request/request-context.ts'
import { parseQuery } from '../request/request-context.ts'
import { jsonAnswer } from '../request/shares.ts'

type AdminDeps = Pick<ApiDeps, 'viewFor'>

const viewOf = ({ viewFor }: AdminDeps, { key }: RequestContext) =>
  viewFor({ role: key?.role, by: key?.keyId ?? '' })

/** Makes a handler that answers with what `look` returns. */
export function show(
  look: (view: View, context: RequestContext, params: PathParams) => Promise<unknown>,
) {
  return (deps: AdminDeps): Handler =>
    async (context, params) => ({
      status: 200,
      body: await look(viewOf(deps, context), context, params),
    })
}

/**
 * GET /admin/jobs/{id}: a failed job. Only operators get its stacks and its payload. A large job
 * blocks the event loop, so operators' reads take turns.
 */
export function getFailedJob(deps: AdminDeps & Pick<ApiDeps, 'readTurns' | 'bodyBudget'>): Handler {
  return (context, params) =>
    deps.readTurns.take(context, async () => {
      const id = String(params.id)
      context.log.jobId = id
      const { acts, readJob } = viewOf(deps, context)
      const found = await (acts?.revealJob ?? readJob)(id)
      const failed = found && failedJobOf(found)
      if (failed === undefined) throw new ProblemError('job_unknown')
      return jsonAnswer(deps, context, failed)
    })
}

/** GET /admin/operations/{id}: the progress of an operation. */
export const getOperation = show(async (view, _context, params) => {
  const operation = await view.findOperation(String(params.id))
  if (operation === undefined) throw new ProblemError('operation_unknown')
  return operation
})

/** POST /admin/jobs:retry and :discard: opens an operation. Any API replica may carry it out. */
export function openOperation(kind: contract.OperationKind) {
  return (deps: AdminDeps & BodyDeps & Pick<ApiDeps, 'settings'>): Handler =>
    async (context) => {
      const parsed = contract.parseOperationRequest(await readBody(context, deps), deps.settings)
      if (!parsed.ok) throw requestInvalid(parsed)
      const operation = await requireActs(viewOf(deps, context)).operate(kind, parsed.value)
      context.log.operationId = operation.id
      return {
        status: 202,
        body: operation,
        headers: { location: `/admin/operations/${operation.id}` },
      }
    }
}

/** POST /admin/lanes/{lane}:pause and :resume: an operation that completes immediately. */
export function operateLane(kind: contract.LaneOperationKind) {
  return show(async (view, context, { lane }) => {
    const parse = kind === 'pause' ? contract.parsePauseQuery : contract.parseResumeQuery
    const query: contract.PauseQuery = parseQuery(context, parse)
    const operation = await requireActs(view).operateLane(kind, lane, query)
    if (operation === undefined) throw new ProblemError('route_unknown')
    context.log.operationId = operation.id
    return operation
  })
}
