// GET /suppressions and DELETE /suppressions/{id}. `POST /erasures` opens them.
import { parseSuppressionsQuery } from '@sluice/contract'
import type { ApiDeps } from '../api-deps.ts'
import { type Handler, parseQuery } from '../request/request-context.ts'
import { chooseTenant } from './delete-source.ts'
import { tenantOf } from './erasures.ts'

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
