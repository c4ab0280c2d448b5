// GET /sources:export: streams a page of a tenant's threads as the requests that store them again.
import { createExportParser, NDJSON, refuseField } from '@sluice/contract'
import type { ApiDeps } from '../api-deps.ts'
import { roomFor, writeHead } from '../request/middleware.ts'
import { requestInvalid } from '../request/problem-error.ts'
import { type Handler, parseQuery, STREAMED } from '../request/request-context.ts'
import { chargeAnswer, type RoomDeps, readWithinLimits } from '../request/shares.ts'
import { FREE_ANSWER_BYTES } from '../settings.ts'
import { chooseTenant } from './delete-source.ts'

/** The most characters of a page. */
const MOST = 16 * 1024 * 1024
/** Memory of an export: a long line, and the documents of a reply. */
const MEMORY_BYTES = 4 * 1024 * 1024
/**
 * Shorter than after other reads: an export reads one small piece after the other, and posts take
 * their turns between them.
 */
const REST_TIMES = 0.25

/** Streams a page. It ends when the quota of the key is used up. */
export function exportSources(
  deps: RoomDeps & Pick<ApiDeps, 'exportThreads' | 'settings' | 'stopping'>,
): Handler {
  const parse = createExportParser(deps.settings)
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
    const read = async (): Promise<typeof STREAMED> => {
      deps.bodyBudget.reserve(context, MEMORY_BYTES)
      const left = quota && deps.enqueuer.quotaLeft(quota)
      const most = left === undefined ? MOST : Math.min(MOST, FREE_ANSWER_BYTES + left * 1024)
      try {
        const threads = await deps.exportThreads(context.tenant, query, { write, gone, most })
        if (threads === undefined)
          throw requestInvalid(
            refuseField('after', 'must be `next` of an earlier page of this export.'),
          )
        context.log.threads = threads
      } finally {
        chargeAnswer(context, bytes)
      }
      begin()
      response.end()
      return STREAMED
    }
    return readWithinLimits(deps, context, read, REST_TIMES)
  }
}
