// DELETE of a stored source, by its name or its id, and of one of its quotes.
import {
  createDeleteQuoteParser,
  createDeleteSourceParser,
  type Limits,
  type Params,
  type Parsed,
  parseDeleteByIdQuery,
  refuseField,
  SOURCE_ID_FORM,
  type SourceToDelete,
} from '@sluice/contract'
import type { Deletion } from '@sluice/queue'
import { quoteIdOf, sourceIdIn, sourceIdOf } from '@sluice/store/ids'
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
 * @param toDeletion makes the deletion of a request. Undefined: nothing can have the id of the path.
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

/** Returns the deletion of a quote. Returns undefined if the source can't have a quote of this id. */
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
