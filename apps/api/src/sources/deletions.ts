// DELETE of a stored source, by its name or its id, and of one of its quotes. Erasures of a person,
// and the suppressions that an erasure may open.
import {
  createDeleteQuoteParser,
  createDeleteSourceParser,
  type Limits,
  type Params,
  type Parsed,
  parseDeleteByIdQuery,
  parseErasureRequest,
  parseSuppressionsQuery,
  refuseField,
  SOURCE_ID_FORM,
  type SourceToDelete,
} from '@sluice/contract'
import type { Deletion } from '@sluice/queue'
import { quoteIdOf, sourceIdIn, sourceIdOf } from '@sluice/store/ids'
import type { ApiDeps } from '../api-deps.ts'
import { type BodyDeps, readBody } from '../body/read-body.ts'
import { jobFailed, ProblemError, requestInvalid } from '../request/problem-error.ts'
import {
  type Handler,
  type PathParams,
  parseQuery,
  type RequestContext,
} from '../request/request-context.ts'
import { type AcceptDeps, acceptJob, claimOf, unfinishedAnswer } from './post-source.ts'

/**
 * Makes the handler of a deletion, which is accepted and awaited as a post is.
 *
 * @param toDeletion makes the deletion of a request. Undefined: nothing can have the path's id.
 */
function deleting<Query extends { tenant?: string }>(
  createParser: (limits: Limits) => (params: Params) => Parsed<Query>,
  toDeletion: (tenant: string, query: Query, params: PathParams) => Deletion | undefined,
) {
  return (deps: AcceptDeps): Handler => {
    const parse = createParser(deps.settings)
    return async (context, params) => {
      const query = parseQuery(context, parse)
      chooseTenant(context, query.tenant)
      const claimed = claimOf(context)
      const deletion = toDeletion(context.tenant, query, params)
      if (deletion === undefined) throw new ProblemError('source_unknown')
      Object.assign(context.log, deletion.name)
      const { jobId, result } = await acceptJob(deps, context, deletion, claimed)
      if (result === undefined)
        return unfinishedAnswer(context, jobId, { id: deletion.deletes.sourceId })
      const [receipt] = result.receipts
      if (!receipt || 'outcomes' in receipt) throw jobFailed(jobId)
      Object.assign(context.log, { outcome: receipt.source.outcome, quotes: receipt.source.quotes })
      return { status: 200, body: receipt.source }
    }
  }
}

/**
 * Sets the tenant of a deletion or an export: an operator names it. @throws {ProblemError} 400.
 */
export function chooseTenant(context: RequestContext, tenant: string | undefined): void {
  const isOperator = context.key?.role === 'operator'
  if (isOperator && tenant === undefined)
    throw requestInvalid(refuseField('tenant', "is required with an operator's key.", 'required'))
  if (!isOperator && tenant !== undefined)
    throw requestInvalid(refuseField('tenant', "is for an operator's key: leave it out."))
  context.tenant = tenant ?? context.tenant
}

/** The deletion of a source. */
export function deletionOf(tenant: string, source: SourceToDelete): Deletion {
  const { service, externalId } = 'id' in source ? { service: 'id', externalId: source.id } : source
  const sourceId = 'id' in source ? source.id : sourceIdOf(tenant, source)
  return { deletes: { sourceId }, name: { service, externalId } }
}

/** Returns the deletion of a quote, or undefined if the source can't have a quote of this id. */
function quoteDeletionOf(sourceId: unknown, quoteId: unknown): Deletion | undefined {
  const [id, quote] = [String(sourceId), String(quoteId)]
  const isOfSource = SOURCE_ID_FORM.test(id) && sourceIdIn(quote) === id
  if (!isOfSource || !SOURCE_ID_FORM.test(quote.slice(id.length))) return undefined
  return { deletes: { sourceId: id, quoteIds: [quote] }, name: { service: 'id', externalId: id } }
}

/** DELETE /sources?service=…&externalId=… */
export const deleteNamedSource = deleting(createDeleteSourceParser, (tenant, name) =>
  deletionOf(tenant, name),
)

/** DELETE /sources/{id} */
export const deleteSource = deleting(
  () => parseDeleteByIdQuery,
  (tenant, _query, { id }) =>
    SOURCE_ID_FORM.test(String(id)) ? deletionOf(tenant, { id: String(id) }) : undefined,
)

/** DELETE /sources/{id}/quotes?externalId=… */
export const deleteNamedQuote = deleting(createDeleteQuoteParser, (_tenant, query, { id }) =>
  quoteDeletionOf(id, quoteIdOf(String(id), query.externalId)),
)

/** DELETE /sources/{id}/quotes/{quoteId} */
export const deleteQuote = deleting(
  () => parseDeleteByIdQuery,
  (_tenant, _query, { id, quoteId }) => quoteDeletionOf(id, quoteId),
)

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
