// Erasures of a person: POST /erasures, GET /erasures and GET /erasures/{id}. Suppressions, which
// an erasure may open: GET /suppressions and DELETE /suppressions/{id}.
import { parseDeleteByIdQuery, parseErasureRequest, parseSuppressionsQuery } from '@sluice/contract'
import type { ApiDeps } from '../api-deps.ts'
import { type BodyDeps, readBody } from '../body/read-body.ts'
import { ProblemError, requestInvalid } from '../request/problem-error.ts'
import { type Handler, parseQuery, type RequestContext } from '../request/request-context.ts'
import { chooseTenant } from './delete-source.ts'

type ErasureDeps = Pick<ApiDeps, 'erasures'>

/** Returns the tenant of a request: an operator names it. @throws {ProblemError} 400. */
function tenantOf(context: RequestContext): string {
  chooseTenant(context, parseQuery(context, parseDeleteByIdQuery).tenant)
  return context.tenant
}

/** POST /erasures: opens an operation. Any API replica may carry it out. */
export function postErasure(deps: ErasureDeps & BodyDeps & Pick<ApiDeps, 'settings'>): Handler {
  return async (context) => {
    const tenant = tenantOf(context)
    const parsed = parseErasureRequest(await readBody(context, deps), deps.settings)
    if (!parsed.ok) throw requestInvalid(parsed)
    const body = await deps.erasures.open(tenant, context.key?.keyId ?? '', parsed.value)
    context.log.operationId = body.id
    return { status: 202, body, headers: { location: `/erasures/${body.id}` } }
  }
}

/** GET /erasures/{id} */
export function getErasure({ erasures }: ErasureDeps): Handler {
  return async (context, { id }) => {
    const body = await erasures.find(tenantOf(context), String(id))
    if (body === undefined) throw new ProblemError('operation_unknown')
    return { status: 200, body }
  }
}

/** GET /erasures */
export function getErasures({ erasures }: ErasureDeps): Handler {
  return async (context) => ({
    status: 200,
    body: { erasures: await erasures.list(tenantOf(context)) },
  })
}

type SuppressionDeps = Pick<ApiDeps, 'suppressions'>

/** GET /suppressions */
export function getSuppressions({ suppressions }: SuppressionDeps): Handler {
  return async (context) => {
    const { tenant, ...page } = parseQuery(context, parseSuppressionsQuery)
    chooseTenant(context, tenant)
    return { status: 200, body: await suppressions.list(context.tenant, page) }
  }
}

/** DELETE /suppressions/{id} */
export function deleteSuppression({ suppressions }: SuppressionDeps): Handler {
  return async (context, { id }) => ({
    status: 200,
    body: await suppressions.end(tenantOf(context), String(id)),
  })
}
