// Reads stored sources: GET /sources, GET /sources/{id}, POST /sources:lookup, and GET
// /sources:export, which streams threads as the requests that store them again.
import {
  createExportParser,
  createLookupParser,
  createSourcesParser,
  NDJSON,
  type PageQuery,
  parsePageQuery,
  refuseField,
  SOURCE_ID_FORM,
} from '@sluice/contract'
import { sourceIdOf } from '@sluice/store/ids'
import type { ApiDeps } from '../api-deps.ts'
import { readBody } from '../body/read-body.ts'
import { roomFor, writeHead } from '../request/middleware.ts'
import { ProblemError, requestInvalid } from '../request/problem-error.ts'
import {
  type Answer,
  type Handler,
  parseQuery,
  type RequestContext,
  STREAMED,
} from '../request/request-context.ts'
import {
  chargeAnswer,
  jsonAnswer,
  type ReadLimitDeps,
  readWithinLimits,
} from '../request/shares.ts'
import { FREE_ANSWER_BYTES } from '../settings.ts'
import { chooseTenant } from './deletions.ts'

type ReadDeps = ReadLimitDeps & Pick<ApiDeps, 'readSource'>

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
export function lookUpSources(
  deps: ReadLimitDeps & Pick<ApiDeps, 'readSources' | 'settings'>,
): Handler {
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

/** The most characters of a page of an export. */
const EXPORT_CHARACTERS = 16 * 1024 * 1024
/** How long a page may take. While threads are stored (`busy`), the tenant rests after the page. */
const PAGE_MS = { busy: 500, calm: 3_000 }
const BUSY_MS = 1_000
/** Memory of an export: a long line, and the documents of some replies. */
const MEMORY_BYTES = 4 * 1024 * 1024

/** Streams a page. It ends when the quota of the key is used up. */
export function exportSources(
  deps: ReadLimitDeps & Pick<ApiDeps, 'enqueuer' | 'exportThreads' | 'settings' | 'stopping'>,
): Handler {
  const { bodyBudget, enqueuer, exportThreads, settings } = deps
  const parse = createExportParser(settings)
  let [drained, busyAt] = [enqueuer.drained(), Number.NEGATIVE_INFINITY]

  /**
   * Returns whether threads are being stored. Remembers it for `BUSY_MS`, because only the first of
   * several pages that begin at once sees a change.
   */
  function isBusy(): boolean {
    const before = drained
    drained = enqueuer.drained()
    if (drained !== before) busyAt = performance.now()
    return performance.now() - busyAt < BUSY_MS
  }

  return async (context) => {
    const { tenant, ...query } = parseQuery(context, parse)
    chooseTenant(context, tenant)
    const { response, quota, signal: gone } = context
    const begin = () => {
      if (response.headersSent) return
      writeHead(deps, context, { status: 200, headers: { 'content-type': NDJSON } })
    }
    let bytes = 0
    const write = async (text: string, signal: AbortSignal) => {
      begin()
      bytes += Buffer.byteLength(text)
      if (!response.write(text)) await roomFor(response, signal)
    }
    const pace = isBusy() ? 'busy' : 'calm'
    const stream = async (): Promise<typeof STREAMED> => {
      bodyBudget.reserve(context, MEMORY_BYTES)
      const left = quota && enqueuer.quotaLeft(quota)
      const most =
        left === undefined
          ? EXPORT_CHARACTERS
          : Math.min(EXPORT_CHARACTERS, FREE_ANSWER_BYTES + left * 1024)
      const page = { write, gone, most, ms: PAGE_MS[pace] }
      const threads = await exportThreads(context.tenant, query, page).finally(() =>
        chargeAnswer(context, bytes),
      )
      if (threads === undefined)
        throw requestInvalid(
          refuseField('after', 'must be `next` of an earlier page of this export.'),
        )
      context.log.threads = threads
      begin()
      response.end()
      return STREAMED
    }
    return readWithinLimits(deps, context, stream, pace === 'busy' ? undefined : 0)
  }
}
