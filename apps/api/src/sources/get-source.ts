// GET /sources/{id} and GET /sources?service=…&externalId=…: a stored source of the caller's tenant, with quotes.
import { createNamedPageParser, fieldFault, type PageQuery, parsePageQuery, refuse } from '@sluice/contract'
import { sourceIdOf } from '@sluice/store/ids'
import type { ApiDeps } from '../api-deps.ts'
import { overloaded, ProblemError, requestInvalid } from '../request/problem-error.ts'
import type { Answer, Handler, RequestContext } from '../request/request-context.ts'

type ReadDeps = Pick<ApiDeps, 'readSource' | 'readSpace' | 'bodyMemory'>

/** GET /sources/{id}: the id is that of an answer to a POST. */
export function getSource(deps: ReadDeps): Handler {
  return async (context, params) => {
    const query = parsePageQuery(queryOf(context))
    if (!query.ok) throw requestInvalid(query)
    return readAnswer(deps, context, String(params.id), query.value)
  }
}

/** GET /sources: the source is named as its caller names it in a POST. */
export function getNamedSource(deps: ReadDeps & Pick<ApiDeps, 'limits'>): Handler {
  const parseQuery = createNamedPageParser(deps.limits)
  return async (context) => {
    const query = parseQuery(queryOf(context))
    if (!query.ok) throw requestInvalid(query)
    const { service, externalId, ...page } = query.value
    Object.assign(context.log, { service, externalId })
    return readAnswer(deps, context, sourceIdOf(context.tenant, { service, externalId }), page)
  }
}

function queryOf({ request }: RequestContext): URLSearchParams {
  const [, query] = (request.url ?? '').split('?', 2)
  return new URLSearchParams(query)
}

const SOURCE_ID = /^[\w-]{24}$/

async function readAnswer(deps: ReadDeps, context: RequestContext, id: string, query: PageQuery): Promise<Answer> {
  // Refuses a cursor of another source.
  if (query.after !== undefined && !query.after.id.startsWith(id))
    throw requestInvalid(refuse(fieldFault('after', 'must be `next` of an earlier page of this source.')))
  const page = SOURCE_ID.test(id) ? await readPage(deps, context, id, query) : undefined
  if (page === undefined) throw new ProblemError('source_unknown')
  context.log.quotes = page.quotes.length
  const json = JSON.stringify(page)
  // The answer stays in memory until its caller has read it.
  deps.bodyMemory.reserve(context, json.length)
  return { status: 200, json }
}

async function readPage({ readSource, readSpace }: ReadDeps, context: RequestContext, id: string, query: PageQuery) {
  const { tenant, signal } = context
  // Each read may scan a large source, and occupies a connection to MongoDB.
  if (!readSpace.take(tenant, 1)) throw overloaded()
  try {
    return await readSource(tenant, id, query, signal)
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    readSpace.release(tenant, 1)
  }
}
