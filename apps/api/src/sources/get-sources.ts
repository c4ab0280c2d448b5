// Reads stored sources of the caller's tenant: GET /sources, GET /sources/{id} and POST
// /sources:lookup.
import type { PageQuery } from '@sluice/contract'
import {
  createLookupParser,
  createSourcesParser,
  parsePageQuery,
  refuseField,
  SOURCE_ID_FORM,
} from '@sluice/contract'
import { sourceIdOf } from '@sluice/store/ids'
import type { ApiDeps } from '../api-deps.ts'
import { readBody } from '../body/read-body.ts'
import { ProblemError, requestInvalid } from '../request/problem-error.ts'
import {
  type Answer,
  type Handler,
  parseQuery,
  type RequestContext,
} from '../request/request-context.ts'
import { jsonAnswer, type RoomDeps, readWithinLimits } from '../request/shares.ts'

type ReadDeps = RoomDeps & Pick<ApiDeps, 'readSource'>

/** GET /sources/{id}: a source, with a page of its quotes. */
export function getSource(deps: ReadDeps): Handler {
  return async (context, { id }) =>
    sourceAnswer(deps, context, String(id), parseQuery(context, parsePageQuery))
}

/**
 * GET /sources: finds a source by `service` and `externalId`. Without `externalId`, lists the
 * tenant's sources.
 */
export function getSources(deps: ReadDeps & Pick<ApiDeps, 'listSources' | 'settings'>): Handler {
  const parseSources = createSourcesParser(deps.settings)
  return async (context) => {
    const query = parseQuery(context, parseSources)
    if ('list' in query) {
      return readWithinLimits(deps, context, async (most) => {
        const list = await deps.listSources(context.tenant, query.list, context.signal, most)
        if (list === undefined)
          throw requestInvalid(
            refuseField(
              'after',
              'must be `next` of an earlier page of this list: same service, same since.',
            ),
          )
        context.log.sources = list.sources.length
        return jsonAnswer(deps, context, list)
      })
    }
    Object.assign(context.log, query.name)
    return sourceAnswer(deps, context, sourceIdOf(context.tenant, query.name), query.page)
  }
}

async function sourceAnswer(
  deps: ReadDeps,
  context: RequestContext,
  id: string,
  query: PageQuery,
): Promise<Answer> {
  if (!SOURCE_ID_FORM.test(id)) throw new ProblemError('source_unknown')
  return readWithinLimits(deps, context, async (most) => {
    const page = await deps.readSource(context.tenant, id, query, context.signal, most)
    if (page === undefined) throw new ProblemError('source_unknown')
    if (query.after !== undefined && !query.after.id.startsWith(id))
      throw requestInvalid(
        refuseField('after', 'must be `next` of an earlier page of this source.'),
      )
    context.log.quotes = page.quotes.length
    return jsonAnswer(deps, context, page)
  })
}

/**
 * POST /sources:lookup: many sources, without their quotes. Sources that are not stored are left
 * out.
 */
export function lookUpSources(deps: RoomDeps & Pick<ApiDeps, 'readSources' | 'settings'>): Handler {
  const parse = createLookupParser(deps.settings)
  return async (context) => {
    const parsed = parse(await readBody(context, deps))
    if (!parsed.ok) throw requestInvalid(parsed)
    const { tenant, signal } = context
    const { service, externalIds } = parsed.value
    const ids = new Map(
      externalIds.map((externalId) => [sourceIdOf(tenant, { service, externalId }), externalId]),
    )
    return readWithinLimits(deps, context, async (most) => {
      const { sources, rest } = await deps.readSources(tenant, [...ids.keys()], signal, most)
      Object.assign(context.log, { service, sources: sources.length })
      return jsonAnswer(deps, context, {
        sources,
        ...(rest.length > 0 && { rest: rest.map((id) => ids.get(id)) }),
      })
    })
  }
}
